//go:build apitest

package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// kubelet answers the API server's requests for logs, and sends their URLs to the channel.
func kubelet(f *fixture, asked chan<- *url.URL) (node string) {
	f.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL
		fmt.Fprint(w, "listening on :8080\ncannot reach the database\n")
	}))
	f.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		f.Fatal(err)
	}
	port, err := strconv.ParseInt(address.Port(), 10, 32)
	if err != nil {
		f.Fatal(err)
	}
	nodes := f.Kube.CoreV1().Nodes()
	created, err := nodes.Create(f.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	created.Status = corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.Hostname()}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}},
	}
	if _, err := nodes.UpdateStatus(f.Context(), created, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
	return created.Name
}

// TestWhyCrashLoop shows the causes of a WebApp down to the last output of its container.
// The log comes from the node through the API server.
func TestWhyCrashLoop(t *testing.T) {
	f := newFixture(t)
	asked := make(chan *url.URL, 10)
	node := kubelet(f, asked)
	env.StartOperator(t, nil)
	f.create()
	f.rollOut("registry.example.com/shop:1")
	f.expect(0, []string{"webapp/shop is ready: 1/1 replicas of registry.example.com/shop:1", "Nothing is wrong."}, "why", "shop")

	f.edit(func(spec *slipwayv1alpha1.WebAppSpec) { spec.Image = "registry.example.com/shop:2" })
	f.deployed("registry.example.com/shop:2")
	if err := f.cluster.Stick(t.Context(), f.Namespace, "shop", crashedStatus()); err != nil {
		t.Fatal(err)
	}
	pods, err := f.Kube.CoreV1().Pods(f.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.ContainerStatuses[0].Ready {
			continue
		}
		if err := f.Kube.CoreV1().Pods(f.Namespace).Bind(t.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.warn(pod)
	}
	status := f.follow("status", "shop", "--watch")
	status.until("CrashLoopBackOff")
	f.expect(1, []string{
		"webapp/shop is not ready (1/1 replicas): CrashLoopBackOff: pod \"shop-",
		"└─ deployment/shop: RolloutInProgress",
		"of the current pod template",
		`CrashLoopBackOff: container "app" ended with exit code 1: cannot reach the database`,
		"warning BackOff (", "3 times): Back-off restarting failed container",
		`last log lines of the previous run of container "app":`,
		"  listening on :8080\n",
	}, "why", "shop", "--tail", "5")
	query := (<-asked).Query()
	if query.Get("previous") != "true" || query.Get("tailLines") != "5" {
		t.Errorf("asked the node for %v", query)
	}
	f.expect(1, []string{`"previous": true`, `"listening on :8080"`}, "why", "shop", "-o", "json")
	if f.expect(1, nil, "why", "shop", "--tail", "0"); len(asked) != 1 {
		t.Errorf("%d more requests for logs, want the one with JSON", len(asked))
	}
}

func (f *fixture) warn(pod *corev1.Pod) {
	f.Helper()
	seen := metav1.Now()
	if _, err := f.Kube.CoreV1().Events(f.Namespace).Create(f.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "event-"}, Type: corev1.EventTypeWarning,
		Reason: "BackOff", Message: "Back-off restarting failed container", Count: 3, FirstTimestamp: seen, LastTimestamp: seen,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: f.Namespace, Name: pod.Name, UID: pod.UID},
	}, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

func TestWhyMissingConfig(t *testing.T) {
	f := newFixture(t)
	env.StartOperator(t, nil)
	if _, err := f.Kube.CoreV1().ConfigMaps(f.Namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "site"}, Data: map[string]string{"other": ""},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.create(func(app *slipwayv1alpha1.WebApp) {
		app.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}}}
		app.Spec.Files = []slipwayv1alpha1.FileSource{{ConfigMapRef: &slipwayv1alpha1.LocalReference{Name: "site"}, MountPath: "/site", Keys: []string{"site.conf"}}}
	})
	running := f.follow("status", "shop", "--watch")
	running.until("SecretNotFound")
	running.stop()
	f.expect(1, []string{
		"webapp/shop is not ready (0/1 replicas): SecretNotFound",
		"├─ secret/db: SecretNotFound: does not exist, and spec.envFrom[0].secretRef needs it",
		`├─ configmap/site: KeyNotFound: has no key "site.conf", and spec.files[0].configMapRef needs it`,
		"└─ deployment/shop: NotFound",
	}, "why", "shop")
}

// TestWhyForViewers runs the command as a user who may read everything except Secrets.
func TestWhyForViewers(t *testing.T) {
	f := newFixture(t)
	f.create(func(app *slipwayv1alpha1.WebApp) {
		app.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}}}
	})
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "webapps"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"slipway.dev"}, Resources: []string{"webapps"}, Verbs: []string{"get"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "replicasets"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"pods", "services"}, Verbs: []string{"get", "list"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "webapps"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "webapps"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}},
	}
	if _, err := f.Kube.RbacV1().Roles(f.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Kube.RbacV1().RoleBindings(f.Namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server applies new RBAC rules with a delay.
	environment.Eventually(t, func() error {
		review, err := f.Kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: f.Namespace, Verb: "get", Group: "slipway.dev", Resource: "webapps",
			}},
		}, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			err = errors.New("jane may not read WebApps yet")
		}
		return err
	})
	f.expect(1, []string{
		"NotObserved: the operator has not looked at generation 1 yet; if that lasts, see whether it runs, and whether it is limited to other namespaces",
		`Not looked at, because you may not read it: events, Secret "db"`,
	}, "why", "shop", "--as", "jane")
}
