//go:build apitest

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// editor returns who asks with the rights of a ServiceAccount of another namespace: none, until edits gives some.
func editor(t *testing.T, kube kubernetes.Interface, address, home, name string) *client {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: home}}
	if err := env.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	answer, err := kube.CoreV1().ServiceAccounts(home).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{api.Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &client{t, address, answer.Status.Token}
}

// edits gives a ServiceAccount the right to list WebApps in a namespace. There is no controller that fills the role edit.
func edits(t *testing.T, namespace, home, name string) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{"slipway.dev"}, Resources: []string{"webapps"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: home}},
	}
	if err := env.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// makeAgain deletes a namespace with what is in it, as the controller of namespaces does, and makes another one of the name.
func makeAgain(t *testing.T, kube kubernetes.Interface, name string) {
	t.Helper()
	ctx := t.Context()
	if err := kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	in := metav1.ListOptions{}
	err := kube.RbacV1().RoleBindings(name).DeleteCollection(ctx, metav1.DeleteOptions{}, in)
	if err == nil {
		err = kube.RbacV1().Roles(name).DeleteCollection(ctx, metav1.DeleteOptions{}, in)
	}
	if err == nil {
		err = env.Client.Delete(ctx, newApp(name, "plan"))
	}
	if err != nil {
		t.Fatal(err)
	}
	going, err := kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	going.Spec.Finalizers = nil
	if _, err := kube.CoreV1().Namespaces().Finalize(ctx, going, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		_, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

// TestTheMonitorForgetsWhoHadTheNamespace: a namespace is deleted and made again for somebody else within the same second or so. The
// monitor records all of it, and shows each owner what is theirs.
func TestTheMonitorForgetsWhoHadTheNamespace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := config.Config{Listen: config.Listen{Metrics: config.Off, Probes: config.Off, API: fmt.Sprintf("127.0.0.1:%d", environment.FreePort(t))}}
	c.Store.Folder = t.TempDir()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, env.Config, Options{Config: c, Log: slog.New(slog.DiscardHandler), Extension: struct {
			*Answers
			NoRules
		}{Answers: &Answers{}}})
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ends with %v", err)
		}
	}()
	kube := kubernetes.NewForConfigOrDie(env.Config)
	home, namespace := env.Namespace(t), env.Namespace(t)
	everybody := &client{t, c.Listen.API, administrator(t)}
	former, later := editor(t, kube, c.Listen.API, home, "former"), editor(t, kube, c.Listen.API, home, "later")
	edits(t, namespace, home, "former")
	history := "history?kind=webapps.slipway.dev&name=plan&namespace=" + namespace
	shows := func(who *client, path string, words ...string) {
		t.Helper()
		environment.Eventually(t, func() error {
			answer := json.RawMessage{}
			if err := who.ask(path, &answer); err != nil {
				return err
			}
			for _, word := range words {
				if !strings.Contains(string(answer), word) {
					return fmt.Errorf("%s has no %s: %s", path, word, answer)
				}
			}
			return nil
		})
	}
	app := newApp(namespace, "plan")
	app.Spec.Image = "example.com/theirs:1"
	if err := env.Client.Create(ctx, app); err != nil {
		t.Fatal(err)
	}
	shows(former, history, string(app.UID))
	shows(former, "object?kind=webapps.slipway.dev&name=plan&namespace="+namespace, "theirs:1")
	makeAgain(t, kube, namespace)
	shows(everybody, history, `"Deleted"`)
	edits(t, namespace, home, "later")
	again := newApp(namespace, "plan")
	again.Spec.Image = "example.com/ours:1"
	if err := env.Client.Create(ctx, again); err != nil {
		t.Fatal(err)
	}
	shows(later, history, string(again.UID))
	shows(everybody, history, string(app.UID), string(again.UID))
	at := url.QueryEscape(app.CreationTimestamp.Format("2006-01-02T15:04:05Z07:00"))
	for _, path := range []string{
		history, "changes", "changes?namespace=" + namespace, "changes?order=oldest&namespace=" + namespace, "health?all=true&namespace=" + namespace,
		"object?kind=webapps.slipway.dev&name=plan&namespace=" + namespace + "&at=" + at,
		"object?kind=webapps.slipway.dev&name=plan&namespace=" + namespace + "&at=" + at + "&uid=" + string(app.UID),
		"object?kind=webapps.slipway.dev&name=plan&namespace=" + namespace + "&uid=" + string(app.UID),
		"object?kind=webapps.slipway.dev&name=plan&namespace=" + namespace,
	} {
		answer := json.RawMessage{}
		err := later.ask(path, &answer)
		if text := fmt.Sprint(err) + string(answer); strings.Contains(text, "theirs") || strings.Contains(text, string(app.UID)) {
			t.Errorf("who has the namespace now reads of who had it before in %s: %s", path, text)
		}
		answer = nil
		err = former.ask(path, &answer)
		if text := fmt.Sprint(err) + string(answer); strings.Contains(text, "ours") || strings.Contains(text, string(again.UID)) {
			t.Errorf("who had the namespace before reads of who has it now in %s: %s", path, text)
		}
	}
}
