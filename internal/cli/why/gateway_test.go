package why

import (
	"bytes"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	gatewaydesired "github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	routing "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// wellGateway returns the findings of a healthy APIGateway with two routes.
func wellGateway(changes ...func(*gatewayFindings)) *gatewayFindings {
	route := func(host, path, service string) slipwayv1alpha1.Route {
		return slipwayv1alpha1.Route{
			Host: slipwayv1alpha1.HostName(host), Path: path,
			BackendService: &slipwayv1alpha1.BackendService{Name: slipwayv1alpha1.ServiceName(service), Port: 8080},
		}
	}
	gateway := &slipwayv1alpha1.APIGateway{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "team-a", UID: "edge-uid", Generation: 3},
		Spec: slipwayv1alpha1.APIGatewaySpec{Routes: []slipwayv1alpha1.Route{
			route("api.example.com", "/users/", "users"), route("api.example.com", "/orders/", "orders"),
		}},
		Status: slipwayv1alpha1.APIGatewayStatus{
			ObservedGeneration: 3, Replicas: 2, ReadyReplicas: 2, Routes: slipwayv1alpha1.RoutesStatus{Total: 2, Live: 2},
			Summary: slipwayv1alpha1.APIGatewaySummary{Routes: "2/2", Replicas: "2/2", Address: "203.0.113.10"},
			Conditions: []metav1.Condition{
				clitest.Condition("Ready", true, "Ready", "every replica serves every route"), clitest.Condition("Degraded", false, "AsExpected", "nothing is wrong"),
				clitest.Condition("Programmed", true, "Programmed", "every ready replica serves this generation of the spec"),
			},
		},
	}
	owned := []metav1.OwnerReference{*metav1.NewControllerRef(gateway, slipwayv1alpha1.SchemeGroupVersion.WithKind(gatewaydesired.Kind))}
	yes := true
	f := &gatewayFindings{findings: findings{now: clitest.Now, logs: map[logTarget]logTail{}}, object: gateway, services: map[string]*corev1.Service{}, slices: map[string][]discoveryv1.EndpointSlice{}, backendPods: map[string][]corev1.Pod{}}
	for _, name := range []string{"users", "orders"} {
		f.services[name] = &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid")},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}, Selector: map[string]string{"app": name}},
		}
		f.slices[name] = []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &yes}}}}}
	}
	f.ingress = &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "edge-ingress", UID: "ingress-uid", OwnerReferences: owned}}
	f.ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "203.0.113.10"}}
	f.service = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "service-uid", OwnerReferences: owned}}
	f.deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "deployment-uid", OwnerReferences: owned},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))},
		Status:     appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2},
	}
	f.pods = []corev1.Pod{pod("edge-a", "edge-1", serving()), pod("edge-b", "edge-1", serving())}
	for _, change := range changes {
		change(f)
	}
	return f
}

// gatewayUnready makes an APIGateway degraded for a reason.
func gatewayUnready(f *gatewayFindings, reason, message string, notLive ...slipwayv1alpha1.RouteNotLive) {
	status := &f.object.Status
	status.Conditions = []metav1.Condition{
		clitest.Condition("Ready", false, reason, message), clitest.Condition("Degraded", true, reason, message),
		clitest.Condition("Programmed", true, "Programmed", "every ready replica serves this generation of the spec"),
	}
	status.Routes.NotLive = notLive
	status.Summary.Routes = []string{"2/2", "1/2", "0/2"}[len(notLive)]
}

func notLive(name, reason, message string) slipwayv1alpha1.RouteNotLive {
	return slipwayv1alpha1.RouteNotLive{Name: name, Reason: reason, Message: message, Replicas: "0/2"}
}

func whyGatewayCases() map[string]*gatewayFindings {
	const orders = "api.example.com/orders/"
	noEndpoints := func(f *gatewayFindings) {
		message := `backendService: no endpoint of Service "orders" is ready`
		gatewayUnready(f, "RoutesNotLive", `route "`+orders+`": `+message, notLive(orders, "NoEndpoints", message))
		f.slices["orders"] = nil
	}
	return map[string]*gatewayFindings{
		"well": wellGateway(),
		"no-endpoints": wellGateway(noEndpoints, func(f *gatewayFindings) {
			f.backendPods["orders"] = []corev1.Pod{pod("orders-x", "orders-1", clitest.Crashing(false)), pod("orders-y", "orders-1", clitest.Crashing(false))}
			f.logs[logTarget{"orders-x", "app", true}] = logTail{Lines: []string{"cannot reach the database"}}
			f.events = []corev1.Event{warning("orders-x-uid", "BackOff", "Back-off restarting failed container app", 40*time.Second, 12)}
		}),
		"no-pods": wellGateway(noEndpoints, func(f *gatewayFindings) { f.backendPods["orders"] = nil }),
		"no-service": wellGateway(func(f *gatewayFindings) {
			message := `backendService.name: there is no Service "orders"`
			gatewayUnready(f, "RoutesNotLive", `route "`+orders+`": `+message, notLive(orders, "BackendNotFound", message))
			delete(f.services, "orders")
		}),
		"port": wellGateway(func(f *gatewayFindings) { f.services["orders"].Spec.Ports[0].Port = 9090 }),
		"behind": wellGateway(func(f *gatewayFindings) {
			gatewayUnready(f, "ReplicaBehind", `pod "edge-b" serves an earlier spec`,
				notLive("api.example.com/users/", "ReplicaBehind", `pod "edge-b" serves an earlier spec`), notLive(orders, "ReplicaBehind", `pod "edge-b" serves an earlier spec`))
			f.object.Status.Conditions[2] = clitest.Condition("Programmed", false, "ReplicaBehind", `pod "edge-b" serves an earlier spec`)
		}),
		"certificate": wellGateway(func(f *gatewayFindings) {
			gatewayUnready(f, "SecretNotFound", `spec.tls[0].secretRef: Secret "tls" does not exist`)
			f.config = []configFinding{{configUse: configUse{kind: kindSecret, name: "tls", field: "spec.tls[0].secretRef"}, readable: true}}
		}),
		"ingress": wellGateway(func(f *gatewayFindings) {
			gatewayUnready(f, "NameConflict", `Ingress "edge-ingress" exists and was not made by Slipway: rename or delete one of them`)
			f.ingress.OwnerReferences = nil
		}),
		"no-address": wellGateway(noEndpoints, func(f *gatewayFindings) { f.ingress.Status = networkingv1.IngressStatus{} }),
		"parent": wellGateway(func(f *gatewayFindings) {
			gatewayUnready(f, "ParentNotFound", `spec.expose.gateway: there is no Gateway "infra/public"`)
			f.ingress = nil
		}),
		"pods": wellGateway(func(f *gatewayFindings) {
			gatewayUnready(f, "CrashLoopBackOff", `pod "edge-a" container "app" ended with exit code 1: cannot reach the database`)
			f.deployment.Status.AvailableReplicas, f.replicaSets = 1, []appsv1.ReplicaSet{set("edge-1", "", 2, 1)}
			f.replicaSets[0].OwnerReferences = clitest.ControlledBy("Deployment", "edge", "deployment-uid")
			f.pods[0].Status = clitest.Crashing(false)
		}),
		"unreadable": wellGateway(func(f *gatewayFindings) {
			f.unreadable, f.services, f.slices = []string{"Services", "EndpointSlices"}, nil, nil
		}),
	}
}

func TestWhyOfAnAPIGateway(t *testing.T) {
	for name, f := range whyGatewayCases() {
		t.Run(name, func(t *testing.T) {
			clitest.Golden(t, "why/gateway-"+name+".txt", func(out *bytes.Buffer) error { return printWhy(out, f.explain()) })
			well := name == "well" || name == "unreadable"
			if got := f.explain().State; (got == health.Healthy) != well {
				t.Errorf("it is %s", got)
			}
		})
	}
	clitest.Golden(t, "why/gateway-no-endpoints.json", func(out *bytes.Buffer) error {
		output := command.FormatJSON
		return output.Print(out, whyGatewayCases()["no-endpoints"].explain())
	})
}

// The command names a route as status and the gateway name it.
func TestARouteIsCalledAsTheGatewayCallsIt(t *testing.T) {
	routes := []slipwayv1alpha1.Route{
		{Name: "named", Path: "/a"}, {Host: "api.example.com", Path: "/b"}, {Path: "/c"}, {Host: "*.example.com"},
	}
	for i := range routes {
		routes[i].DirectResponse = &slipwayv1alpha1.DirectResponse{StatusCode: 204}
	}
	compiled, problems := routing.Compile(routing.Input{Routes: routes})
	if len(compiled.Routes) != len(routes) {
		t.Fatalf("%d routes are compiled: %v", len(compiled.Routes), problems)
	}
	for _, route := range compiled.Routes {
		if got := routeName(routes[route.Index]); got != route.Name {
			t.Errorf("it is called %q, want %q", got, route.Name)
		}
	}
}
