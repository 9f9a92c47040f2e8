package why

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/cli/command"
)

// These are the kinds of the Gateway API that why explains by themselves, besides the Gateway.
const (
	kindHTTPRoute = "HTTPRoute"
	kindGRPCRoute = "GRPCRoute"
	kindTLSRoute  = "TLSRoute"
	kindTCPRoute  = "TCPRoute"
	kindUDPRoute  = "UDPRoute"
)

// standardRoutes are the kinds of routes.
var standardRoutes = []string{kindHTTPRoute, kindGRPCRoute, kindTLSRoute, kindTCPRoute, kindUDPRoute}

// standardFindings are what is found alike of a Gateway and a route of the Gateway API. In its maps an object that
// does not exist is nil, and one that could not be read is missing.
type standardFindings struct {
	findings
	// namespace is that of the object that was named.
	namespace string
	classes   map[string]*gatewayv1.GatewayClass
	gateways  map[types.NamespacedName]*gatewayv1.Gateway
	// grants are ReferenceGrants by namespace. One that is missing could not be read.
	grants map[string][]*gatewayv1.ReferenceGrant
}

func newStandardFindings(c *command.Clients, namespace string) standardFindings {
	return standardFindings{
		findings: findings{clients: c, byCauses: true}, namespace: namespace, classes: map[string]*gatewayv1.GatewayClass{},
		gateways: map[types.NamespacedName]*gatewayv1.Gateway{}, grants: map[string][]*gatewayv1.ReferenceGrant{},
	}
}

// standardGatewayFindings are the findings of a Gateway.
type standardGatewayFindings struct {
	standardFindings
	gateway *gatewayv1.Gateway
	// family is the Gateway, and where Slipway does not serve it what is below it by owner references.
	family *family
	// routes are those that name the Gateway.
	routes []*standardRoute
	// parameters are GatewayParameters that are named and do not exist.
	parameters []missingParameters
}

// standardRouteFindings are the findings of a route.
type standardRouteFindings struct {
	standardFindings
	asked *relative
	route *standardRoute
	// services are its backends.
	services map[types.NamespacedName]*serviceFinding
}

// missingParameters are GatewayParameters that do not exist. field is where they are named.
type missingParameters struct {
	field string
	name  types.NamespacedName
}

// serviceFinding is a Service with its endpoints. service is nil if it does not exist.
type serviceFinding struct {
	service *corev1.Service
	slices  []discoveryv1.EndpointSlice
	// slicesRead and podsRead report whether these could be read.
	slicesRead, podsRead bool
	pods                 []corev1.Pod
}

// standardRoute is a route of any kind.
type standardRoute struct {
	metav1.ObjectMeta
	kind     string
	refs     []gatewayv1.ParentReference
	status   []gatewayv1.RouteParentStatus
	backends []backendUse
}

// backendUse is a reference of a route to a Service.
type backendUse struct {
	field string
	name  types.NamespacedName
	port  int32
	// idle reports whether no requests are sent to it, because of its weight.
	idle bool
}

// isStandard reports whether why explains a kind of the Gateway API by itself.
func isStandard(kind command.KindInfo) bool {
	return kind.Group == gatewayv1.GroupName && kindOf(kind) != nil
}

// standardKind returns the kind of the Gateway API that somebody means by a name such as gateway, HTTPRoutes or
// grpcroute.gateway.networking.k8s.io. It is empty for another name.
func standardKind(name string) string {
	resource, group, _ := strings.Cut(strings.ToLower(name), ".")
	_, ofVersion, _ := strings.Cut(group, ".")
	if group != "" && group != gatewayv1.GroupName && ofVersion != gatewayv1.GroupName {
		return ""
	}
	for _, kind := range append([]string{command.KindGateway}, standardRoutes...) {
		if singular := strings.ToLower(kind); resource == singular || resource == singular+"s" {
			return kind
		}
	}
	return ""
}

// inStandardGroup makes KIND/NAME name a Gateway of the Gateway API, whatever other kinds are called Gateway.
func inStandardGroup(name string) string {
	return strings.ToLower(command.KindGateway) + "." + gatewayv1.GroupName + "/" + name
}

// servedKind finds a kind of the Gateway API at the version that the API server prefers. ok is false if the cluster has no such kind.
func servedKind(c *command.AnyClients, kind string) (info command.KindInfo, ok bool, err error) {
	mapping, err := c.Mapper.RESTMapping(schema.GroupKind{Group: gatewayv1.GroupName, Kind: kind})
	switch {
	case meta.IsNoMatchError(err):
		return command.KindInfo{}, false, nil
	case err != nil:
		return command.KindInfo{}, false, fmt.Errorf("find the kinds of the cluster: %w", err)
	}
	return command.InfoOf(mapping), true, nil
}

// getMeant reads the object that KIND/NAME names, as kubectl does, with two differences: a cluster without the Gateway API is
// told as such; and where kubectl takes gateway for another kind, the Gateway API's Gateway is meant if there is no such object.
// other is how to ask for the Gateway that has the same name as the returned object.
func (o *whyOptions) getMeant(
	ctx context.Context, clients *command.AnyClients, argument string,
) (object *unstructured.Unstructured, kind command.KindInfo, other string, err error) {
	object, kind, err = o.Get(ctx, clients, argument)
	name, objectName, _ := strings.Cut(argument, "/")
	meant := standardKind(name)
	if meant == "" || err == nil && isStandard(kind) {
		return object, kind, "", err
	}
	of, served, kindErr := servedKind(clients, meant)
	switch {
	case kindErr != nil:
		return object, kind, "", errors.Join(err, kindErr)
	case !served && err != nil:
		return nil, kind, "", fmt.Errorf("%s: this cluster has no %ss: the Gateway API (%s) is not installed, or an old version of it",
			argument, meant, gatewayv1.GroupName)
	case !served || meant != command.KindGateway:
		return object, kind, "", err
	}
	gateway, gatewayErr := clients.Read(ctx, of, clients.Namespace, objectName)
	switch {
	case err == nil && gatewayErr == nil:
		return object, kind, inStandardGroup(objectName), nil
	case gatewayErr == nil:
		return gateway, of, "", nil
	}
	return object, kind, "", err
}

// findShort finds what gw/NAME means: the APIGateway, or else the Gateway of the Gateway API.
func findShort(ctx context.Context, clients *command.AnyClients, name string) (explained, error) {
	gateway, err := clients.Slipway.SlipwayV1alpha1().APIGateways(clients.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, clients.NotGot(err, command.GatewayKind, name)
	}
	other, otherErr := clients.GatewayNamed(ctx, name)
	switch {
	case err == nil:
		found, err := loadGateway(ctx, clients.Clients, gateway)
		if err == nil && otherErr == nil {
			found.facts().other = inStandardGroup(name)
		}
		return found, err
	case otherErr == nil:
		return loadStandardGateway(ctx, clients, named{kind: command.GatewayInfo, name: name, object: other})
	case !apierrors.IsNotFound(otherErr):
		return nil, fmt.Errorf("get %s in namespace %q: %w", inStandardGroup(name), clients.Namespace, otherErr)
	}
	return nil, clients.NotGot(err, command.GatewayKind, name)
}
