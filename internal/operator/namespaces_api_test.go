//go:build apitest

package operator_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// requests remembers what was asked for and what was refused.
type requests struct {
	next  http.RoundTripper
	mutex sync.Mutex
	asked map[string]int
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err == nil {
		r.asked[request.Method+" "+request.URL.Path] = response.StatusCode
	}
	return response, err
}

// With a role in two namespaces and no right besides it works there, and asks for nothing
// elsewhere but whether it may read GatewayClasses.
func TestAnOperatorForSomeNamespacesNeedsNoRightInTheCluster(t *testing.T) {
	first, second, other := env.Namespace(t), env.Namespace(t), env.Namespace(t)
	err := env.InstallModule(t.Context(), "sigs.k8s.io/gateway-api",
		"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml", "config/crd/standard/gateway.networking.k8s.io_gateways.yaml",
		"config/crd/standard/gateway.networking.k8s.io_gatewayclasses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	whole := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(raw, &whole); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{first, second} {
		meta := metav1.ObjectMeta{Name: "slipway-operator", Namespace: namespace}
		role := &rbacv1.Role{ObjectMeta: meta, Rules: whole.Rules}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "slipway-operator", Namespace: "ops"}},
		}
		if err := env.Client.Create(t.Context(), role); err != nil {
			t.Fatal(err)
		}
		if err := env.Client.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	record := &requests{asked: map[string]int{}}
	env.StartOperatorWith(t, func(config *rest.Config, options *environment.Options) {
		options.Namespaces, options.ClusterRights = []string{first, second}, false
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:ops:slipway-operator",
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:ops", "system:authenticated"},
		}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { record.next = next; return record })
	})
	for _, namespace := range []string{first, second, other} {
		app := &slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: namespace}, Spec: slipwayv1alpha1.WebAppSpec{Image: "shop:1", Port: 8080}}
		gateway := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: namespace}, Spec: slipwayv1alpha1.APIGatewaySpec{
			Routes: []slipwayv1alpha1.Route{{BackendService: &slipwayv1alpha1.BackendService{Name: "shop", Port: 8080}}},
		}}
		if err := env.Client.Create(t.Context(), app); err != nil {
			t.Fatal(err)
		}
		if err := env.Client.Create(t.Context(), gateway); err != nil {
			t.Fatal(err)
		}
	}
	for _, parent := range []string{second, other} {
		attach(t, first, parent)
	}
	for _, namespace := range []string{second, first} {
		environment.Eventually(t, func() error { return reported(t, namespace) })
	}
	if err := reported(t, other); err == nil {
		t.Error("it works in a namespace that it was not given")
	}
	record.mutex.Lock()
	defer record.mutex.Unlock()
	for what, status := range record.asked {
		_, path, _ := strings.Cut(what, " ")
		inside := strings.Contains(path, "/namespaces/"+first+"/") || strings.Contains(path, "/namespaces/"+second+"/")
		discovery := path == "/api" || path == "/api/v1" || path == "/apis" || strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") <= 3
		classes := path == "/apis/gateway.networking.k8s.io/v1/gatewayclasses"
		hosts := strings.HasPrefix(path, "/apis/coordination.k8s.io/v1/namespaces/operator-of-"+first+"/leases") // its own namespace
		if (status == http.StatusForbidden || !inside && !discovery && !hosts) && !classes {
			t.Errorf("it asked for %s: %d", what, status)
		}
	}
}

// attach makes an APIGateway that attaches to a Gateway in the namespace parent. It waits until
// the HTTPRoute exists and status speaks of the spec.
func attach(t *testing.T, namespace, parent string) {
	t.Helper()
	gateway := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "attached-" + parent, Namespace: namespace}, Spec: slipwayv1alpha1.APIGatewaySpec{
		Expose: &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeHTTPRoute, Gateway: &slipwayv1alpha1.ParentGateway{
			LocalReference: slipwayv1alpha1.LocalReference{Name: "shared"}, Namespace: parent,
		}},
		Routes: []slipwayv1alpha1.Route{{BackendService: &slipwayv1alpha1.BackendService{Name: "shop", Port: 8080}}},
	}}
	if err := env.Client.Create(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(gateway)
	environment.Eventually(t, func() error {
		if err := env.Client.Get(t.Context(), key, &gatewayv1.HTTPRoute{}); err != nil {
			return err
		}
		if err := env.Client.Get(t.Context(), key, gateway); err != nil {
			return err
		}
		if gateway.Status.ObservedGeneration != gateway.Generation {
			return fmt.Errorf("%s attaches to namespace %s: status speaks of generation %d, want %d", key, parent, gateway.Status.ObservedGeneration, gateway.Generation)
		}
		return nil
	})
}

// reported returns an error until the Deployments of a namespace exist and both objects have a
// status.
func reported(t *testing.T, namespace string) error {
	app, gateway := &slipwayv1alpha1.WebApp{}, &slipwayv1alpha1.APIGateway{}
	if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "shop"}, app); err != nil {
		return err
	}
	if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "edge"}, gateway); err != nil {
		return err
	}
	if len(app.Status.Conditions) == 0 || len(gateway.Status.Conditions) == 0 {
		return fmt.Errorf("%s: there is no status", namespace)
	}
	for _, name := range []string{"shop", "edge"} {
		if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &appsv1.Deployment{}); err != nil {
			return err
		}
	}
	return nil
}
