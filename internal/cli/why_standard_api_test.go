//go:build apitest

package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// installGatewayAPI installs the Gateway API for a test, and removes it afterwards: other tests are about clusters without it.
func (f *fixture) installGatewayAPI() {
	f.Helper()
	var files []string
	kinds := []string{"gatewayclasses", "gateways", "httproutes", "grpcroutes", "referencegrants", "backendtlspolicies"}
	for _, kind := range kinds {
		files = append(files, "config/crd/standard/gateway.networking.k8s.io_"+kind+".yaml")
	}
	if err := env.InstallModule(f.Context(), "sigs.k8s.io/gateway-api", files...); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		var left []client.Object
		for _, kind := range kinds {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: kind + "." + gatewayv1.GroupName}}
			if err := env.Client.Delete(context.Background(), crd); err != nil {
				f.Error(err)
			}
			left = append(left, crd)
		}
		environment.Eventually(f, func() error {
			for _, crd := range left {
				if err := env.Client.Get(context.Background(), client.ObjectKeyFromObject(crd), crd); !apierrors.IsNotFound(err) {
					return errors.Join(err, fmt.Errorf("the definition %q is still there", crd.GetName()))
				}
			}
			return nil
		})
	})
}

func (f *fixture) createAll(objects ...client.Object) {
	f.Helper()
	for _, object := range objects {
		if err := env.Client.Create(f.Context(), object); err != nil {
			f.Fatalf("create %T: %v", object, err)
		}
	}
}

// gatewayOf is a Gateway of a class with a listener for HTTP.
func (f *fixture) gatewayOf(name, class string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.Namespace},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(class),
			Listeners:        []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		},
	}
}

// httpRoute sends everything that comes to a Gateway to a Service. Without a namespace it is one of its own.
func (f *fixture) httpRoute(namespace, name, gateway, backendNamespace, service string) *gatewayv1.HTTPRoute {
	in, port := gatewayv1.Namespace(f.Namespace), gatewayv1.PortNumber(8080)
	to := gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: &port}
	if backendNamespace != "" {
		other := gatewayv1.Namespace(backendNamespace)
		to.Namespace = &other
	}
	return &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(gateway), Namespace: &in}}},
			Rules:           []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: to}}}}},
		},
	}
}

// startGatewayOperator runs the operator for Gateways of some namespaces.
func (f *fixture) startGatewayOperator(namespaces ...string) {
	f.Helper()
	env.StartOperatorWith(f, func(_ *rest.Config, options *environment.Options) {
		options.Namespaces = namespaces
		options.Controllers = []string{"gateway", "gatewayclass"}
	})
}

// answered waits until a controller has said something of each route.
func (f *fixture) answered(routes ...*gatewayv1.HTTPRoute) {
	f.Helper()
	environment.Eventually(f, func() error {
		for _, route := range routes {
			if err := env.Client.Get(f.Context(), client.ObjectKeyFromObject(route), route); err != nil {
				return err
			}
			if len(route.Status.Parents) == 0 || meta.FindStatusCondition(route.Status.Parents[0].Conditions, gatewayapi.ConditionLive) == nil {
				return fmt.Errorf("nobody has said anything of the route %q yet", route.Name)
			}
		}
		return nil
	})
}

// The Gateway API is installed once for all of these.
func TestWhyOfTheGatewayAPI(t *testing.T) {
	f := newFixture(t)
	for _, argument := range []string{"gateway/edge", "gateways.gateway.networking.k8s.io/edge"} {
		f.expect(1, []string{argument + ": this cluster has no Gateways: the Gateway API (gateway.networking.k8s.io) is not installed"}, "why", argument)
	}
	f.expect(1, []string{"httproute/shop: this cluster has no HTTPRoutes"}, "why", "httproute/shop")
	f.expect(1, []string{`apigateways.slipway.dev "edge" not found`}, "why", "gw/edge")

	f.installGatewayAPI()
	t.Run("objects of Slipway", checkOwnObjects)
	t.Run("a Gateway of another controller", checkOtherController)
	t.Run("the short name", checkShortName)
	t.Run("what cannot be read", checkUnreadable)
}

func checkOwnObjects(t *testing.T) {
	f := newFixture(t)
	other := env.Namespace(t)
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: gatewayapi.Controller}}
	f.startGatewayOperator(f.Namespace, other)
	yes, no := true, false
	f.backend("users", &yes)
	f.backend("orders", &no)
	shop, blog := f.httpRoute(f.Namespace, "shop", "edge", "", "users"), f.httpRoute(other, "blog", "edge", "", "users")
	broken, stock := f.httpRoute(f.Namespace, "broken", "edge", "", "nowhere"), f.httpRoute(f.Namespace, "stock", "edge", other, "items")
	orders, lost := f.httpRoute(f.Namespace, "orders", "edge", "", "orders"), f.httpRoute(f.Namespace, "lost", "none", "", "users")
	items := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "items", Namespace: other}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}}}
	edge := f.gatewayOf("edge", class.Name)
	f.createAll(class, edge, f.gatewayOf("orphan", "no-such-class"), shop, blog, broken, stock, orders, lost, items)
	f.answered(shop, blog, broken, stock, orders)
	environment.Eventually(f, func() error {
		if err := env.Client.Get(f.Context(), client.ObjectKeyFromObject(edge), edge); err != nil {
			return err
		}
		if listeners := edge.Status.Listeners; len(listeners) != 1 || listeners[0].AttachedRoutes != 4 {
			return fmt.Errorf("the status of the Gateway is not complete yet: %+v", listeners)
		}
		return nil
	})

	whole := f.expect(1, []string{
		"gateway/edge is not ready (0/1 replicas, ", "AddressNotAssigned",
		"├─ service/edge-" + class.Name + ": AddressNotAssigned: has no address; it is of type LoadBalancer",
		"httproute/broken: BackendNotFound", "httproute/" + other + "/blog: NotAllowedByListeners: ", "RefNotPermitted",
		"Class:        " + class.Name + " (slipway.dev/gateway)", "web        80     HTTP",
	}, "why", "gateway/edge")
	for _, argument := range []string{"gw/edge", "Gateways/edge", "gateway.gateway.networking.k8s.io/edge", "gateways.gateway.networking.k8s.io/edge", "gateways.v1.gateway.networking.k8s.io/edge"} {
		if got := f.expect(1, nil, "why", argument); got != whole {
			t.Errorf("%s:\n%s\nwant\n%s", argument, got, whole)
		}
	}
	f.expect(1, []string{`gatewayclass/no-such-class: NotFound: does not exist, and spec.gatewayClassName needs it`}, "why", "gateway/orphan")
	f.expect(1, []string{`gateways.gateway.networking.k8s.io "none" not found`}, "why", "gateway/none")
	f.expect(1, []string{"gateway/edge: NoReplica: ", "gateway/edge   all        slipway.dev/gateway   True       True       False"}, "why", "httproute/shop")
	f.expect(1, []string{"├─ gateway/edge: BackendNotFound", "└─ service/nowhere: BackendNotFound: does not exist"}, "why", "httproutes.gateway.networking.k8s.io/broken")
	f.expect(1, []string{"service/orders: NoEndpoints: has no endpoint that is ready"}, "why", "httproute/orders")
	f.expect(1, []string{"gateway/none: NotFound: does not exist"}, "why", "httproute/lost")
	f.expect(1, []string{
		"service/" + other + `/items: RefNotPermitted: rules[0].backendRefs[0] needs a ReferenceGrant: create one in namespace "` + other + `" with spec.from`,
	}, "why", "httproute/stock")
	f.expect(1, []string{`"gateway": {`, `"attachedRoutes": `, `"reason": "NotAllowedByListeners"`}, "why", "gateway/edge", "-o", "json")
	f.expect(1, []string{"--foreign is about WebApps and APIGateways"}, "why", "gateway/edge", "--foreign")
}

// checkOtherController: what another controller than Slipway serves is explained by its status, and by what belongs to it.
func checkOtherController(t *testing.T) {
	f := newFixture(t)
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/controller"}}
	gateway := f.gatewayOf("edge", class.Name)
	route := &gatewayv1.GRPCRoute{
		ObjectMeta: metav1.ObjectMeta{Name: "stock", Namespace: f.Namespace},
		Spec:       gatewayv1.GRPCRouteSpec{CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}}},
	}
	f.createAll(class, gateway, route)
	f.expect(1, []string{`its controller "example.com/controller" has said nothing of the Gateway`}, "why", "gateway/edge")
	f.expect(1, []string{`gateway/edge: NotAnswered: GatewayClass "` + class.Name + `" is not Slipway's`}, "why", "grpcroute/stock")

	fine := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: 1, LastTransitionTime: metav1.Now()}
	}
	gateway.Status.Conditions = []metav1.Condition{fine("Accepted"), fine("Programmed")}
	route.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: route.Spec.ParentRefs[0], ControllerName: "example.com/controller", Conditions: []metav1.Condition{fine("Accepted"), fine("ResolvedRefs")}}}
	for _, object := range []client.Object{gateway, route} {
		if err := env.Client.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	f.expect(0, []string{"grpcroute/stock is ready: it is served by gateway/edge"}, "why", "grpcroute/stock")
	f.expect(0, []string{"gateway/edge is ready: ", "Nothing is wrong.", "grpcroute/stock   all        True       True       -"}, "why", "gateway/edge")

	owned := []metav1.OwnerReference{*metav1.NewControllerRef(gateway, schema.GroupVersion(gatewayv1.GroupVersion).WithKind(command.KindGateway))}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "edge-x", Namespace: f.Namespace, OwnerReferences: owned},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "proxy:1"}}},
	}
	f.createAll(pod)
	pod.Status = crashedStatus()
	if err := env.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	f.expect(1, []string{"gateway/edge is not ready: CrashLoopBackOff: pod/edge-x: ", "└─ pod/edge-x: CrashLoopBackOff"}, "why", "gateway/edge", "--tail", "0")
}

// checkShortName: gw is short for both kinds, and whoever has an APIGateway has meant that until now.
func checkShortName(t *testing.T) {
	f := newFixture(t)
	f.createAll(f.gatewayOf("edge", "none"), f.gatewayOf("plain", "none"))
	if _, err := f.Slipway.SlipwayV1alpha1().APIGateways(f.Namespace).Create(t.Context(), &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const hint = "A Gateway of the Gateway API has the same name: kubectl slipway why gateway.gateway.networking.k8s.io/edge"
	f.expect(1, []string{"apigateway/edge is not ready", hint}, "why", "gw/edge")
	f.expect(1, []string{`"object": "apigateway/edge"`, `"other": "gateway.gateway.networking.k8s.io/edge"`}, "why", "GW/edge", "-o", "json")
	f.expect(1, []string{"gateway/edge is not ready"}, "why", "gateway/edge")
	f.expect(1, []string{"gateway/plain is not ready"}, "why", "gw/plain")
	f.expect(1, []string{`apigateways.slipway.dev "none" not found`}, "why", "gw/none")

	// Before the Gateway API another kind may have been called Gateway, and kubectl may take the name for that.
	theirs := f.install("a.example.com", command.KindGateway, apiextensionsv1.NamespaceScoped)
	f.make(theirs, command.KindGateway, f.Namespace, "edge", nil, map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	f.expect(0, []string{"gateway/edge is ready", hint}, "why", "gateway/edge")
	f.expect(1, []string{"gateway/plain is not ready: NotFound: gatewayclass/none"}, "why", "gateway/plain")
	f.expect(1, []string{"gateway/edge is not ready: NotFound: gatewayclass/none"}, "why", "gateway.gateway.networking.k8s.io/edge")
}

// checkUnreadable: who may not read routes of other namespaces still sees those of the Gateway's.
func checkUnreadable(t *testing.T) {
	f := newFixture(t)
	f.createAll(f.gatewayOf("edge", "none"), f.httpRoute(f.Namespace, "shop", "edge", "", "users"))
	f.allow("reader",
		rbacv1.PolicyRule{APIGroups: []string{gatewayv1.GroupName}, Resources: []string{"gateways", "httproutes"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"}, Verbs: []string{"list"}})
	f.expect(1, []string{
		"httproute/shop   all", `GatewayClass "none"`, "HTTPRoutes of other namespaces", "GRPCRoutes",
	}, "why", "gateway/edge", "--as", "reader")
	f.expect(1, []string{"Not looked at, because you may not read it: ", `GatewayClass "none"`, "Services"}, "why", "httproute/shop", "--as", "reader")
}
