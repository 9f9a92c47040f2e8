//go:build apitest

package cli

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// backend creates a Service. If ready is not nil, it also creates an endpoint.
func (f *fixture) backend(name string, ready *bool) {
	f.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 8080}}},
	}
	if _, err := f.Kube.CoreV1().Services(f.Namespace).Create(f.Context(), service, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	if ready == nil {
		return
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}},
	}
	if _, err := f.Kube.DiscoveryV1().EndpointSlices(f.Namespace).Create(f.Context(), slice, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

func TestWhyFollowsARouteToItsPods(t *testing.T) {
	f := newFixture(t)
	env.StartOperator(t, nil)
	yes, no := true, false
	f.backend("users", &yes)
	f.backend("orders", &no)
	f.backend("carts", nil)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-x", Labels: map[string]string{"app": "orders"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "orders:1"}}},
	}
	pod, err := f.Kube.CoreV1().Pods(f.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status = crashedStatus()
	if _, err := f.Kube.CoreV1().Pods(f.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	gateway := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
	for _, name := range []string{"users", "orders", "carts", "nowhere"} {
		gateway.Spec.Routes = append(gateway.Spec.Routes, slipwayv1alpha1.Route{
			Name: name, Host: "api.example.com", Path: "/" + name,
			BackendService: &slipwayv1alpha1.BackendService{Name: slipwayv1alpha1.ServiceName(name), Port: 8080},
		})
	}
	gateway.Spec.TLS = []slipwayv1alpha1.GatewayTLS{{SecretRef: slipwayv1alpha1.LocalReference{Name: "tls"}}}
	gateways := f.Slipway.SlipwayV1alpha1().APIGateways(f.Namespace)
	if _, err := gateways.Create(t.Context(), gateway, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		gateway, err := gateways.Get(t.Context(), "edge", metav1.GetOptions{})
		if err == nil && gateway.Status.ObservedGeneration == 0 {
			err = errors.New("nobody has looked at the gateway yet")
		}
		return err
	})
	f.expect(1, []string{
		"apigateway/edge is not ready (0/1 replicas, 0/4 routes): ",
		"  └─ service/nowhere: BackendNotFound: does not exist",
		"  └─ service/carts: NoEndpoints: has no endpoint that is ready: no pod has the labels of its selector (spec.selector)",
		"  └─ service/orders: NoEndpoints: has no endpoint that is ready",
		`     └─ pod/orders-x: CrashLoopBackOff: container "app" ended with exit code 1: cannot reach the database`,
		"├─ secret/tls: SecretNotFound: does not exist, and spec.tls[0].secretRef needs it",
		"└─ deployment/edge",
	}, "why", "gw/edge", "--tail", "0")
	f.expect(1, []string{`"object": "route/orders"`, `"object": "pod/orders-x"`}, "why", "apigateway/edge", "-o", "json", "--tail", "0")
	f.expect(1, []string{`apigateways.slipway.dev "none" not found`}, "why", "apigateway/none")
	f.expect(1, []string{`"apigateway/edge" is not a WebApp`}, "status", "apigateway/edge")
}
