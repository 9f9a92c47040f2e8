//go:build apitest

package apigateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/truth"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// fixture is one test's namespace with the pods of its gateways.
type fixture struct {
	*testing.T
	namespace string
	cluster   *workload.Cluster
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	gateways, err := workload.NewGateways(env.Client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gateways.Close)
	return &fixture{T: t, namespace: env.Namespace(t), cluster: &workload.Cluster{Client: env.Client, Gateways: gateways}}
}

// startOperator runs the operator for the namespaces of the test alone: who has a host
// is decided over the whole cluster.
func (f *fixture) startOperator(change func(*rest.Config), others ...string) *environment.Operator {
	f.Helper()
	return env.StartOperatorWith(f, func(config *rest.Config, options *environment.Options) {
		options.Namespaces = append([]string{f.namespace}, others...)
		options.GatewayAdminPort = f.cluster.Gateways.Port
		if change != nil {
			change(config)
		}
	})
}

// gateway returns the manifest that everybody starts with, changed as asked.
func (f *fixture) gateway(change ...func(*slipwayv1alpha1.APIGateway)) *slipwayv1alpha1.APIGateway {
	gateway := &slipwayv1alpha1.APIGateway{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: f.namespace},
		Spec: slipwayv1alpha1.APIGatewaySpec{
			Replicas: ptr[int32](2),
			Routes: []slipwayv1alpha1.Route{
				route("api.example.com", "/users/", "user-service"),
				route("api.example.com", "/products/", "product-service"),
			},
		},
	}
	for _, c := range change {
		c(gateway)
	}
	return gateway
}

func route(host, path, service string) slipwayv1alpha1.Route {
	return slipwayv1alpha1.Route{
		Host: slipwayv1alpha1.HostName(host), Path: path,
		BackendService: &slipwayv1alpha1.BackendService{Name: slipwayv1alpha1.ServiceName(service), Port: 8080},
	}
}

// service is a backend.
func (f *fixture) service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}},
	}
}

func (f *fixture) create(objects ...client.Object) {
	f.Helper()
	for _, object := range objects {
		if err := env.Client.Create(f.Context(), object); err != nil {
			f.Fatalf("create %T: %v", object, err)
		}
	}
}

func (f *fixture) delete(object client.Object) {
	f.Helper()
	if err := env.Client.Delete(f.Context(), object); err != nil {
		f.Fatalf("delete %T %q: %v", object, object.GetName(), err)
	}
}

// update changes the latest version of an object.
func update[T client.Object](f *fixture, object T, change func(T)) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := env.Client.Get(f.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return env.Client.Update(f.Context(), object)
	})
}

// get reads an object of that name.
func (f *fixture) get(name string, object client.Object) error {
	return env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, object)
}

// running makes the gateway with its backends and lets its pods start.
func (f *fixture) running(change ...func(*slipwayv1alpha1.APIGateway)) *slipwayv1alpha1.APIGateway {
	f.Helper()
	f.create(f.service("user-service"), f.service("product-service"))
	gateway := f.gateway(change...)
	f.create(gateway)
	f.rollOut()
	return gateway
}

// rollOut lets the cluster start the pods and waits until the gateway is ready.
func (f *fixture) rollOut() {
	f.Helper()
	f.startPods()
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// startPods lets the cluster start what the Deployment asks for.
func (f *fixture) startPods() {
	f.Helper()
	environment.Eventually(f, func() error { return f.cluster.RollOut(f.Context(), f.namespace, "edge") })
}

// pods are the names of the gateway's pods.
func (f *fixture) pods() []types.NamespacedName {
	f.Helper()
	list := &corev1.PodList{}
	if err := env.Client.List(f.Context(), list, client.InNamespace(f.namespace), client.MatchingLabels{slipwayv1alpha1.LabelAPIGateway: "edge"}); err != nil {
		f.Fatal(err)
	}
	var names []types.NamespacedName
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return names
}

// replace has a pod answer otherwise, or truthfully again.
func (f *fixture) replace(pod types.NamespacedName, handler http.Handler) {
	f.Helper()
	if err := f.cluster.Gateways.Replace(pod, handler); err != nil {
		f.Fatal(err)
	}
}

// wait waits until the gateway's status speaks of its current spec and check is content.
func (f *fixture) wait(check func(*slipwayv1alpha1.APIGateway) error) *slipwayv1alpha1.APIGateway {
	f.Helper()
	return f.waitNamed("edge", check)
}

func (f *fixture) waitNamed(name string, check func(*slipwayv1alpha1.APIGateway) error) *slipwayv1alpha1.APIGateway {
	f.Helper()
	gateway := &slipwayv1alpha1.APIGateway{}
	environment.Eventually(f, func() error {
		if err := f.get(name, gateway); err != nil {
			return err
		}
		if err := check(gateway); err != nil {
			return err
		}
		if gateway.Status.ObservedGeneration != gateway.Generation {
			return errors.New("status speaks of an older generation")
		}
		return nil
	})
	if err := truth.Check(gateway); err != nil {
		f.Errorf("the status is not true: %v\n%+v", err, gateway.Status)
	}
	return gateway
}

// waitFor waits for a condition.
func (f *fixture) waitFor(conditionType string, status metav1.ConditionStatus, reason string) *slipwayv1alpha1.APIGateway {
	f.Helper()
	return f.wait(func(g *slipwayv1alpha1.APIGateway) error { return has(g, conditionType, status, reason) })
}

// has tells whether a condition has the status and, unless empty, the reason.
func has(gateway *slipwayv1alpha1.APIGateway, conditionType string, status metav1.ConditionStatus, reason string) error {
	c := meta.FindStatusCondition(gateway.Status.Conditions, conditionType)
	if c == nil {
		return fmt.Errorf("no condition %s in %+v", conditionType, gateway.Status)
	}
	if c.Status != status || (reason != "" && c.Reason != reason) {
		return fmt.Errorf("%s is %s %s (%s), want %s %s", conditionType, c.Status, c.Reason, c.Message, status, reason)
	}
	return nil
}

// settle waits until the gateway does not change any more.
func (f *fixture) settle() {
	f.Helper()
	environment.Quiet(f, 500*time.Millisecond, func() string {
		gateway := &slipwayv1alpha1.APIGateway{}
		if f.get("edge", gateway) != nil {
			return ""
		}
		return gateway.ResourceVersion
	})
}

func ptr[T any](value T) *T { return &value }
