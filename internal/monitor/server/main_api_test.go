//go:build apitest

package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// tokenOf makes a ServiceAccount and a token of it.
func tokenOf(t *testing.T, kube kubernetes.Interface, namespace, name string, audiences ...string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, _ = kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	answer, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

// TestRightsOfARealAPIServer uses real tokens and RBAC: an account that may list a kind in one namespace sees that, and no more.
func TestRightsOfARealAPIServer(t *testing.T) {
	kube, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespace, other := env.Namespace(t), env.Namespace(t)
	apples := kindOf("apples", true)
	m := newMonitor(t, func(o *Options) {
		o.TokenReviews, o.AccessReviews = kube.AuthenticationV1().TokenReviews(), kube.AuthorizationV1().SubjectAccessReviews()
		o.Namespaces = metadata.NewForConfigOrDie(env.Config).Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	}, apples)
	m.made = time.Now().Add(time.Hour) // after the namespaces
	m.record(apples, namespace, "mine", "mine")
	m.record(apples, other, "theirs", "theirs")
	m.record(kindOf("pears", true), namespace, "pear", "pear")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{"example.com"}, Resources: []string{"apples"}}}}
	if _, err := kube.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: namespace}},
	}
	if _, err := kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"for the API server": tokenOf(t, kube, namespace, "reader"),
		"for the monitor":    tokenOf(t, kube, namespace, "reader", api.Audience),
	} {
		environment.Eventually(t, func() error { // the API server reads RBAC from its caches
			if m.ask(token, api.Prefix+"changes?kind=apples.example.com&namespace="+namespace).Code != http.StatusOK {
				m.handler, _ = New(m.options) // which remembers nothing
				return errDown
			}
			return nil
		})
		who := get[api.Whoami](m, token, api.Prefix+"whoami")
		if who.User != "system:serviceaccount:"+namespace+":reader" {
			t.Errorf("%s: %+v", name, who)
		}
		all := get[api.Changes](m, token, api.Prefix+"changes")
		if len(all.Changes) != 1 || all.Changes[0].Name != "mine" {
			t.Errorf("%s: sees %v", name, names(all.Changes))
		}
		for _, question := range everyQuestion("apples.example.com", other, "theirs", "") {
			if body := m.ask(token, question).Body.String(); strings.Contains(body, "theirs") || strings.Contains(body, "pear") {
				t.Errorf("%s: %s: %s", name, question, body)
			}
		}
	}
	stranger := tokenOf(t, kube, namespace, "stranger", api.Audience)
	for _, question := range everyQuestion("apples.example.com", namespace, "mine", "") {
		if body := m.ask(stranger, question).Body.String(); strings.Contains(body, "mine") || strings.Contains(body, "pear") {
			t.Errorf("a stranger sees %s: %s", question, body)
		}
	}
	if w := m.ask(tokenOf(t, kube, namespace, "reader", "vault"), api.Prefix+"whoami"); w.Code != http.StatusUnauthorized {
		t.Errorf("a token for another audience: %d", w.Code)
	}
	if w := m.ask(stranger[:len(stranger)-4]+"AAAA", api.Prefix+"whoami"); w.Code != http.StatusUnauthorized {
		t.Errorf("a token with another signature: %d", w.Code)
	}
	// A token that is only for the monitor is worth nothing to the API server.
	config := *env.Config
	config.BearerToken, config.CertData, config.KeyData = stranger, nil, nil
	as, err := kubernetes.NewForConfig(&config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := as.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}); err == nil {
		t.Error("the API server accepts a token for the monitor")
	}
	t.Run("of an account that is deleted", func(t *testing.T) {
		token := tokenOf(t, kube, namespace, "leaving", api.Audience)
		if w := m.ask(token, api.Prefix+"whoami"); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
		if err := kube.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), "leaving", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		ahead := &aheadClock{}
		m.options.Clock = ahead
		if m.handler, err = New(m.options); err != nil {
			t.Fatal(err)
		}
		environment.Eventually(t, func() error {
			ahead.by.Add(int64(2 * time.Minute)) // longer than the server knows a token
			if m.ask(token, api.Prefix+"whoami").Code != http.StatusUnauthorized {
				return errDown
			}
			return nil
		})
	})
}

// TestAStreamOverARealConnection reads from the server that programs use.
func TestAStreamOverARealConnection(t *testing.T) {
	kube, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	apples := kindOf("apples", true)
	m := newMonitor(t, func(o *Options) {
		o.TokenReviews, o.AccessReviews = kube.AuthenticationV1().TokenReviews(), kube.AuthorizationV1().SubjectAccessReviews()
		o.Namespaces = metadata.NewForConfigOrDie(env.Config).Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	}, apples)
	server := httptest.NewUnstartedServer(nil)
	server.Config = HTTPServer(m.handler)
	server.Start()
	defer server.Close()
	defer server.CloseClientConnections()
	namespace := env.Namespace(t)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "all-"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "all", Namespace: namespace}},
	}
	made, err := kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = kube.RbacV1().ClusterRoleBindings().Delete(context.Background(), made.Name, metav1.DeleteOptions{})
	})
	l := listen(t, server.URL, tokenOf(t, kube, namespace, "all", api.Audience), "stream", "")
	l.next("view")
	m.record(apples, "north", "new", "x")
	change := api.Change{}
	_, data := l.next("change")
	if err := json.Unmarshal([]byte(data), &change); err != nil || change.Name != "new" || time.Since(change.Time) > time.Minute {
		t.Errorf("%s %v", data, err)
	}
}
