package why

import (
	"bytes"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// observed is a condition about the generation that the objects of these tests have.
func observed(kind string, is bool, reason, message string) metav1.Condition {
	c := clitest.Condition(kind, is, reason, message)
	c.ObservedGeneration = 2
	return c
}

func acceptedRoute() []metav1.Condition {
	return []metav1.Condition{
		observed("Accepted", true, "Accepted", "the route is attached to the Gateway"),
		observed("ResolvedRefs", true, "ResolvedRefs", "everything that the route refers to can be used"),
		observed(gatewayapi.ConditionLive, true, "Live", "every pod that is ready serves this generation of the route"),
	}
}

// setOf replaces a condition, or adds it.
func setOf(conditions []metav1.Condition, c metav1.Condition) []metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == c.Type {
			conditions[i] = c
			return conditions
		}
	}
	return append(conditions, c)
}

// standardGateway is a Gateway with two listeners that is served.
func standardGateway(name string) *gatewayv1.Gateway {
	host := gatewayv1.Hostname("shop.example.com")
	inCerts := gatewayv1.Namespace("certs")
	fine := func() []metav1.Condition {
		return []metav1.Condition{observed("Accepted", true, "Accepted", "fine"), observed("ResolvedRefs", true, "ResolvedRefs", "fine"), observed("Programmed", true, "Programmed", "fine")}
	}
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a", UID: types.UID(name + "-uid"), Generation: 2},
		Spec: gatewayv1.GatewaySpec{GatewayClassName: "slipway", Listeners: []gatewayv1.Listener{
			{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType},
			{Name: "tls", Port: 443, Protocol: gatewayv1.HTTPSProtocolType, Hostname: &host, TLS: &gatewayv1.ListenerTLSConfig{
				CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "edge-tls", Namespace: &inCerts}},
			}},
		}},
		Status: gatewayv1.GatewayStatus{
			Addresses: []gatewayv1.GatewayStatusAddress{{Value: "203.0.113.10"}}, Conditions: fine(),
			Listeners: []gatewayv1.ListenerStatus{{Name: "web", AttachedRoutes: 1, Conditions: fine()}, {Name: "tls", AttachedRoutes: 1, Conditions: fine()}},
		},
	}
}

func standardClass(name string, controller gatewayv1.GatewayController) *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gatewayv1.GatewayClassSpec{ControllerName: controller},
		Status: gatewayv1.GatewayClassStatus{Conditions: []metav1.Condition{observed("Accepted", true, "Accepted", "fine")}},
	}
}

// routeOf is a route that a Gateway serves.
func routeOf(kind, namespace, name string, refs ...gatewayv1.ParentReference) *standardRoute {
	route := &standardRoute{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: "route-uid", Generation: 2}, kind: kind, refs: refs}
	for _, ref := range refs {
		route.status = append(route.status, gatewayv1.RouteParentStatus{ParentRef: ref, ControllerName: gatewayapi.Controller, Conditions: acceptedRoute()})
	}
	return route
}

func toEdge() gatewayv1.ParentReference {
	in := gatewayv1.Namespace("team-a")
	return gatewayv1.ParentReference{Name: "edge", Namespace: &in}
}

// standardFacts are what is found of every Gateway and route of these tests.
func standardFacts() standardFindings {
	s := newStandardFindings(nil, "team-a")
	s.now, s.logs = clitest.Now, map[logTarget]logTail{}
	s.classes["slipway"] = standardClass("slipway", gatewayapi.Controller)
	return s
}

// wellStandardGateway returns the findings of a Gateway with two routes that is served.
func wellStandardGateway(t *testing.T, changes ...func(*standardGatewayFindings)) *standardGatewayFindings {
	t.Helper()
	f := &standardGatewayFindings{standardFindings: standardFacts(), gateway: standardGateway("edge")}
	f.gateways[types.NamespacedName{Namespace: "team-a", Name: "edge"}] = f.gateway
	f.routes = []*standardRoute{routeOf(kindHTTPRoute, "team-a", "shop", toEdge()), routeOf(kindGRPCRoute, "team-b", "stock", toEdge())}
	owned := []metav1.OwnerReference{*metav1.NewControllerRef(f.gateway, schema.GroupVersion(gatewayv1.GroupVersion).WithKind(command.KindGateway))}
	f.service = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "edge-slipway", UID: "service-uid", OwnerReferences: owned}}
	f.service.Spec.Type = corev1.ServiceTypeLoadBalancer
	f.deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "edge-slipway", UID: "deployment-uid", OwnerReferences: owned},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))},
		Status:     appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2},
	}
	f.pods = []corev1.Pod{pod("edge-slipway-a", "edge-slipway-1", serving()), pod("edge-slipway-b", "edge-slipway-1", serving())}
	for _, change := range changes {
		change(f)
	}
	f.family = &family{asked: askedFor(t, command.KindGateway, f.gateway, f.gateway.ObjectMeta)}
	return f
}

// askedFor is an object as the API server returns it.
func askedFor(t *testing.T, kind string, object any, of metav1.ObjectMeta) *relative {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	content["apiVersion"], content["kind"] = gatewayv1.GroupVersion.String(), kind
	return &relative{
		kind: command.KindInfo{GroupVersionResource: schema.GroupVersion(gatewayv1.GroupVersion).WithResource(strings.ToLower(kind) + "s"), Kind: kind, Namespaced: true}, namespace: of.Namespace, name: of.Name,
		uid: of.UID, object: &unstructured.Unstructured{Object: content},
	}
}

// says changes a condition of the Gateway.
func says(kind string, is bool, reason, message string) func(*standardGatewayFindings) {
	return func(f *standardGatewayFindings) {
		status := &f.gateway.Status
		status.Conditions = setOf(status.Conditions, observed(kind, is, reason, message))
	}
}

// saysOfListener changes a condition of a listener.
func saysOfListener(index int, kind string, is bool, reason, message string) func(*standardGatewayFindings) {
	return func(f *standardGatewayFindings) {
		listener := &f.gateway.Status.Listeners[index]
		listener.Conditions = setOf(listener.Conditions, observed(kind, is, reason, message))
	}
}

// unansweredGateway is as the API server makes a Gateway.
func unansweredGateway(f *standardGatewayFindings) {
	pending := metav1.Condition{Type: "Accepted", Status: metav1.ConditionUnknown, Reason: "Pending", Message: "Waiting for controller", LastTransitionTime: clitest.Ago(time.Minute)}
	f.gateway.Status = gatewayv1.GatewayStatus{Conditions: []metav1.Condition{pending}}
	f.deployment, f.service, f.pods, f.routes = nil, nil, nil, nil
}

func standardGatewayCases(t *testing.T) map[string]*standardGatewayFindings {
	const notPermitted = `tls.certificateRefs[0]: no ReferenceGrant in namespace "certs" permits Gateways of namespace "team-a" to use Secret "edge-tls"`
	return map[string]*standardGatewayFindings{
		"well": wellStandardGateway(t),
		"refused": wellStandardGateway(t, func(f *standardGatewayFindings) {
			bad := routeOf(kindHTTPRoute, "team-c", "blog", toEdge())
			bad.status[0].Conditions = setOf(bad.status[0].Conditions, observed("Accepted", false, "NotAllowedByListeners", `parentRefs: listener "web" does not allow routes of namespace "team-c"`))
			bad.status[0].Conditions = setOf(bad.status[0].Conditions, observed(gatewayapi.ConditionLive, false, "NotAccepted", "the Gateway does not accept the route"))
			alike := *bad
			alike.Name = "wiki"
			silent := routeOf(kindHTTPRoute, "team-a", "new", toEdge())
			silent.status = nil
			f.routes = append(f.routes, bad, &alike, silent)
		}),
		"grant": wellStandardGateway(t,
			says("ResolvedRefs", false, "ListenersNotResolved", `listener "tls": `+notPermitted), says("Programmed", true, "Programmed", "fine"),
			saysOfListener(1, "ResolvedRefs", false, "RefNotPermitted", notPermitted), saysOfListener(1, "Programmed", false, "Invalid", notPermitted),
			func(f *standardGatewayFindings) { f.grants["certs"] = nil }),
		"conflict": wellStandardGateway(t,
			says("Accepted", false, "ListenersNotValid", `no listener can be served: listener "web": port: listener "tls" speaks HTTPS on port 80, so HTTP cannot be spoken there`),
			says("Programmed", false, "Invalid", `no listener can be served`),
			saysOfListener(0, "Accepted", false, "ProtocolConflict", `port: listener "tls" speaks HTTPS on port 80, so HTTP cannot be spoken there`),
			saysOfListener(0, "Conflicted", true, "ProtocolConflict", `port: listener "tls" speaks HTTPS on port 80, so HTTP cannot be spoken there`),
			saysOfListener(1, "OverlappingTLSConfig", true, "OverlappingHostnames", `hostname: there are names that listener "other" has as well`)),
		"no-class": wellStandardGateway(t, unansweredGateway, func(f *standardGatewayFindings) { f.classes["slipway"] = nil }),
		"other-controller": wellStandardGateway(t, unansweredGateway, func(f *standardGatewayFindings) {
			f.classes["slipway"] = standardClass("slipway", "example.com/controller")
		}),
		"operator-silent": wellStandardGateway(t, unansweredGateway),
		"deleted-class":   wellStandardGateway(t, func(f *standardGatewayFindings) { f.classes["slipway"] = nil }),
		"parameters": wellStandardGateway(t, says("Accepted", false, "InvalidParameters", `spec.infrastructure.parametersRef: there is no GatewayParameters "big" in namespace "team-a"`),
			says("Programmed", false, "Invalid", `spec.infrastructure.parametersRef: there is no GatewayParameters "big" in namespace "team-a"`),
			func(f *standardGatewayFindings) {
				f.parameters = []missingParameters{{"spec.infrastructure.parametersRef", types.NamespacedName{Namespace: "team-a", Name: "big"}}}
			}),
		"address": wellStandardGateway(t, says("Programmed", false, "AddressNotAssigned", `Service "edge-slipway" has no address yet`), func(f *standardGatewayFindings) {
			f.gateway.Status.Addresses = nil
			f.events = []corev1.Event{warning("service-uid", "SyncLoadBalancerFailed", "no address is left", time.Minute, 3)}
		}),
		"pods": wellStandardGateway(t, func(f *standardGatewayFindings) {
			f.deployment.Status.AvailableReplicas, f.deployment.Status.ReadyReplicas = 1, 1
			f.replicaSets = []appsv1.ReplicaSet{set("edge-slipway-1", "", 2, 1)}
			f.replicaSets[0].OwnerReferences = clitest.ControlledBy("Deployment", "edge-slipway", "deployment-uid")
			f.pods[0].Status = clitest.Crashing(false)
			f.logs[logTarget{"edge-slipway-a", "app", true}] = logTail{Lines: []string{"cannot bind port 80"}}
		}),
		"unreadable": wellStandardGateway(t, func(f *standardGatewayFindings) {
			delete(f.classes, "slipway")
			f.unreadable = []string{`GatewayClass "slipway"`, "HTTPRoutes of other namespaces"}
		}),
		"hostile": wellStandardGateway(t, says("Accepted", false, "Re\x1b[2Jason", "clear\x1b[2J\nnext line"), func(f *standardGatewayFindings) {
			f.gateway.Spec.GatewayClassName, f.gateway.Spec.Listeners[0].Name = "cl\x1bass", "we\x1bb"
			f.gateway.Status.Addresses[0].Value = "203.0.113.10\x1b]0;x\x07"
			f.gateway.Status.Listeners[0].Conditions = nil
			route := routeOf(kindHTTPRoute, "team-a", "sh\x1bop", toEdge())
			route.status[0].Conditions = setOf(route.status[0].Conditions, observed("Accepted", false, "No\x1b[1m", "bold\x1b[1m"))
			f.routes = []*standardRoute{route}
			f.other = inStandardGroup("x\x1b")
		}),
	}
}

func TestWhyOfAGatewayOfTheGatewayAPI(t *testing.T) {
	well := map[string]bool{"well": true, "refused": true, "deleted-class": true, "unreadable": true}
	for name, f := range standardGatewayCases(t) {
		t.Run(name, func(t *testing.T) {
			got := &bytes.Buffer{}
			clitest.Golden(t, "why/standard-gateway-"+name+".txt", func(out *bytes.Buffer) error {
				view := f.explain()
				view.Other = f.other
				err := printWhy(out, view)
				got.Write(out.Bytes())
				return err
			})
			if state := f.explain().State; (state == health.Healthy) != well[name] {
				t.Errorf("it is %s", state)
			}
			if strings.ContainsAny(got.String(), "\x1b\x07") {
				t.Errorf("what controls a terminal was printed: %q", got)
			}
		})
	}
	clitest.Golden(t, "why/standard-gateway-grant.json", func(out *bytes.Buffer) error {
		output := command.FormatJSON
		return output.Print(out, standardGatewayCases(t)["grant"].explain())
	})
}

// Many routes leave the cause on the screen.
func TestOfManyRoutesSomeAreShown(t *testing.T) {
	f := wellStandardGateway(t, func(f *standardGatewayFindings) {
		f.routes = nil
		for i := range 40 {
			route := routeOf(kindHTTPRoute, "team-a", string(rune('a'+i%26))+string(rune('a'+i/26)), toEdge())
			route.status[0].Conditions = setOf(route.status[0].Conditions, observed("Accepted", i >= 15, "No", "refused, "+route.Name))
			f.routes = append(f.routes, route)
		}
	})
	view := f.explain()
	if len(view.Causes) != maxRefusedRoutes || len(view.Gateway.Routes) != maxShownRoutes || view.Gateway.RoutesLeft != 40-maxShownRoutes || view.Routes != "25/40" {
		t.Errorf("%d refused and %d routes are shown, %d are left, %s are served", len(view.Causes), len(view.Gateway.Routes), view.Gateway.RoutesLeft, view.Routes)
	}
	if view.Gateway.Routes[14].State != health.Failed || view.Gateway.Routes[15].State != health.Healthy {
		t.Error("those with a problem are not the first")
	}
}

// wellStandardRoute returns the findings of an HTTPRoute with a Service that is served.
func wellStandardRoute(t *testing.T, changes ...func(*standardRouteFindings)) *standardRouteFindings {
	t.Helper()
	f := &standardRouteFindings{
		standardFindings: standardFacts(), route: routeOf(kindHTTPRoute, "team-a", "shop", toEdge()), services: map[types.NamespacedName]*serviceFinding{},
	}
	users := types.NamespacedName{Namespace: "team-a", Name: "users"}
	f.route.backends = []backendUse{{field: "rules[0].backendRefs[0]", name: users, port: 8080}}
	f.gateways[types.NamespacedName{Namespace: "team-a", Name: "edge"}] = standardGateway("edge")
	f.services[users] = serviceWith("users", true)
	for _, change := range changes {
		change(f)
	}
	of := gatewayv1.HTTPRoute{ObjectMeta: f.route.ObjectMeta, Status: gatewayv1.HTTPRouteStatus{RouteStatus: gatewayv1.RouteStatus{Parents: f.route.status}}}
	f.asked = askedFor(t, kindHTTPRoute, &of, f.route.ObjectMeta)
	return f
}

// serviceWith is a Service with one endpoint.
func serviceWith(name string, ready bool) *serviceFinding {
	return &serviceFinding{
		service: &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid")},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}, Selector: map[string]string{"app": name}},
		},
		slices: []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}}}, slicesRead: true,
	}
}

// saysOfRoute changes a condition of an entry in the status of the route.
func saysOfRoute(entry int, kind string, is bool, reason, message string) func(*standardRouteFindings) {
	return func(f *standardRouteFindings) {
		at := &f.route.status[entry]
		at.Conditions = setOf(at.Conditions, observed(kind, is, reason, message))
	}
}

// withoutAnswer makes the class of the Gateway that of a controller, and takes the entry of the route away.
func withoutAnswer(controller gatewayv1.GatewayController) func(*standardRouteFindings) {
	return func(f *standardRouteFindings) {
		f.route.status = nil
		f.classes["slipway"] = standardClass("slipway", controller)
	}
}

func standardRouteCases(t *testing.T) map[string]*standardRouteFindings {
	users := types.NamespacedName{Namespace: "team-a", Name: "users"}
	elsewhere := types.NamespacedName{Namespace: "stock", Name: "items"}
	toStock := func(f *standardRouteFindings) { f.route.backends[0].name = elsewhere }
	return map[string]*standardRouteFindings{
		"well":       wellStandardRoute(t),
		"refused":    wellStandardRoute(t, saysOfRoute(0, "Accepted", false, "NoMatchingListenerHostname", "hostnames: no listener that allows the route has a name in common with it")),
		"unresolved": wellStandardRoute(t, saysOfRoute(0, "ResolvedRefs", false, "BackendNotFound", `rules[0].backendRefs[0]: Service "users" does not exist`), func(f *standardRouteFindings) { f.services[users].service = nil }),
		"partly":     wellStandardRoute(t, saysOfRoute(0, "PartiallyInvalid", true, "UnsupportedValue", "Dropped Rule: its requests are answered with 500: rules[1].filters[0].type: ExtensionRef is not supported")),
		"not-live":   wellStandardRoute(t, saysOfRoute(0, gatewayapi.ConditionLive, false, "ReplicaBehind", `pod "edge-slipway-a" does not serve this generation of the route yet`)),
		"old":        wellStandardRoute(t, func(f *standardRouteFindings) { f.route.Generation = 5 }),
		"two-parents": wellStandardRoute(t, func(f *standardRouteFindings) {
			section, port := gatewayv1.SectionName("web"), gatewayv1.PortNumber(80)
			inner := gatewayv1.ParentReference{Name: "inner", SectionName: &section, Port: &port}
			f.route.refs = append(f.route.refs, inner)
			f.gateways[types.NamespacedName{Namespace: "team-a", Name: "inner"}] = nil
		}),
		"other-controller": wellStandardRoute(t, withoutAnswer("example.com/controller")),
		"operator-silent":  wellStandardRoute(t, withoutAnswer(gatewayapi.Controller)),
		"no-class":         wellStandardRoute(t, withoutAnswer(gatewayapi.Controller), func(f *standardRouteFindings) { f.classes["slipway"] = nil }),
		"mesh": wellStandardRoute(t, func(f *standardRouteFindings) {
			group, kind := gatewayv1.Group(""), gatewayv1.Kind("Service")
			f.route.refs, f.route.status = []gatewayv1.ParentReference{{Group: &group, Kind: &kind, Name: "users"}}, nil
		}),
		"no-parent": wellStandardRoute(t, func(f *standardRouteFindings) { f.route.refs, f.route.status = nil, nil }),
		"port":      wellStandardRoute(t, func(f *standardRouteFindings) { f.route.backends[0].port = 9090 }),
		"no-endpoints": wellStandardRoute(t, func(f *standardRouteFindings) {
			f.services[users] = serviceWith("users", false)
			f.services[users].pods, f.services[users].podsRead = []corev1.Pod{pod("users-x", "users-1", clitest.Crashing(false))}, true
			f.logs[logTarget{"users-x", "app", true}] = logTail{Lines: []string{"cannot reach the database"}}
		}),
		"no-endpoints-elsewhere": wellStandardRoute(t, toStock, func(f *standardRouteFindings) {
			name := gatewayv1.ObjectName("items")
			f.grants["stock"] = []*gatewayv1.ReferenceGrant{{ObjectMeta: metav1.ObjectMeta{Namespace: "stock"}, Spec: gatewayv1.ReferenceGrantSpec{
				From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: kindHTTPRoute, Namespace: "team-a"}},
				To:   []gatewayv1.ReferenceGrantTo{{Kind: "Service", Name: &name}},
			}}}
			f.services[elsewhere] = serviceWith("items", false)
			f.services[elsewhere].pods, f.services[elsewhere].podsRead = []corev1.Pod{pod("items-x", "items-1", clitest.Crashing(false))}, true
		}),
		"idle": wellStandardRoute(t, func(f *standardRouteFindings) {
			f.services[users], f.route.backends[0].idle = serviceWith("users", false), true
		}),
		"grant": wellStandardRoute(t, toStock, func(f *standardRouteFindings) { f.grants["stock"] = nil },
			saysOfRoute(0, "ResolvedRefs", false, "RefNotPermitted", `rules[0].backendRefs[0]: no ReferenceGrant in namespace "stock" permits HTTPRoutes of namespace "team-a" to use Service "items"`)),
		"unreadable": wellStandardRoute(t, func(f *standardRouteFindings) {
			delete(f.gateways, types.NamespacedName{Namespace: "team-a", Name: "edge"})
			delete(f.services, users)
			f.unreadable = []string{`Gateway "team-a/edge"`, "Services"}
		}),
		"hostile": wellStandardRoute(t, func(f *standardRouteFindings) {
			section := gatewayv1.SectionName("we\x1bb")
			f.route.refs[0].SectionName, f.route.status[0].ParentRef.SectionName = &section, &section
			f.route.status[0].ControllerName = "evil\x1b[2J/x"
		}, saysOfRoute(0, "Accepted", false, "No\x1b[1m", "bold\x1b[1m")),
	}
}

func TestWhyOfARouteOfTheGatewayAPI(t *testing.T) {
	well := map[string]bool{"well": true, "idle": true, "unreadable": true}
	for name, f := range standardRouteCases(t) {
		t.Run(name, func(t *testing.T) {
			got := &bytes.Buffer{}
			clitest.Golden(t, "why/standard-route-"+name+".txt", func(out *bytes.Buffer) error {
				err := printWhy(out, f.explain())
				got.Write(out.Bytes())
				return err
			})
			if state := f.explain().State; (state == health.Healthy) != well[name] {
				t.Errorf("it is %s", state)
			}
			if strings.ContainsAny(got.String(), "\x1b\x07") {
				t.Errorf("what controls a terminal was printed: %q", got)
			}
		})
	}
}

func TestNamesOfTheKindsOfTheGatewayAPI(t *testing.T) {
	for name, want := range map[string]string{
		"gateway": command.KindGateway, "Gateways": command.KindGateway, "gateway.gateway.networking.k8s.io": command.KindGateway, "gateways.v1.gateway.networking.k8s.io": command.KindGateway,
		"httproutes": kindHTTPRoute, "grpcroute.gateway.networking.k8s.io": kindGRPCRoute,
		"gw": "", "gateways.networking.istio.io": "", "apigateway": "", "x-tcproute": "", "": "",
		"tlsroutes": kindTLSRoute, "tcproute": kindTCPRoute, "UDPRoute": kindUDPRoute,
	} {
		if got := standardKind(name); got != want {
			t.Errorf("%q means the kind %q, want %q", name, got, want)
		}
	}
}

// A UDPRoute needs a port for UDP, and the others one for TCP.
func TestThePortOfABackendIsOfTheProtocolOfItsRoute(t *testing.T) {
	service := &serviceFinding{service: &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}, {Port: 80}}}}}
	for _, test := range []struct {
		port int32
		udp  bool
		want string
	}{{53, true, ""}, {53, false, "has no port 53"}, {80, false, ""}, {80, true, "has no port 80 for UDP"}} {
		if _, got := service.lack(test.port, test.udp); got != test.want {
			t.Errorf("port %d, UDP %t: got %q, want %q", test.port, test.udp, got, test.want)
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "TCPRoute", "metadata": map[string]any{"namespace": "team-a", "name": "sql"}, "spec": map[string]any{
		"parentRefs": []any{map[string]any{"name": "edge"}}, "rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "db", "port": int64(5432)}}}},
	}}}
	route, err := newStandardRoute(object, kindTCPRoute)
	if err != nil || len(route.refs) != 1 || len(route.backends) != 1 || route.backends[0].port != 5432 {
		t.Errorf("got %+v, %v", route, err)
	}
}
