package gatewayapi

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// Input is everything that a Gateway depends on. Nothing in it is changed.
type Input struct {
	// Gateway is the Gateway itself. Required.
	Gateway *gatewayv1.Gateway
	// HTTPRoutes and the others are routes in any order. Those that do not name the Gateway as
	// a parent are left out.
	HTTPRoutes []*gatewayv1.HTTPRoute
	GRPCRoutes []*gatewayv1.GRPCRoute
	TLSRoutes  []*gatewayv1.TLSRoute
	TCPRoutes  []*gatewayv1.TCPRoute
	UDPRoutes  []*gatewayv1.UDPRoute
	// Grants are ReferenceGrants, of any namespaces.
	Grants []*gatewayv1.ReferenceGrant
	// ListenerSets are ListenerSets in any order. Those that do not name the Gateway are left out.
	ListenerSets []*gatewayv1.ListenerSet
	// Namespaces are the labels of namespaces, by name. A namespace that is missing has no
	// labels.
	Namespaces map[string]map[string]string
	// Only are the namespaces to which Slipway is limited. Nothing is known of objects elsewhere, and of a namespace
	// nothing but its name. Empty: it is not limited.
	Only []string
	// Services are those that routes may name. One that is missing does not exist.
	Services map[types.NamespacedName]Service
	// Secrets are those that listeners may name. One that is missing does not exist.
	Secrets map[types.NamespacedName]Secret
	// Bundles are the ConfigMaps with certificates of authorities that the Gateway and policies may name. One that is
	// missing does not exist.
	Bundles map[types.NamespacedName]Bundle
	// Policies are BackendTLSPolicies in any order. Those for Services that no route names are left out.
	Policies []*gatewayv1.BackendTLSPolicy
	// GatewayPolicies are GatewayPolicies in any order. Those that name nothing of the Gateway are left out.
	GatewayPolicies []*slipwayv1alpha1.GatewayPolicy
	// Authentication is what the policies ask of clients, by AuthID. Where it is missing, nobody is let in.
	Authentication map[string]Authentication
	// ReservedPorts are ports for TCP that no listener can have, because the pods need them for
	// themselves. That does not depend on whether they do so now: nobody's policy takes a port from a listener.
	ReservedPorts []int32
	// ParametersProblem is why the parameters of the Gateway cannot be met, with the field. Empty: they can, or that is not known.
	ParametersProblem string
	// Unknown are fields of the Gateway, of ListenerSets, of routes and of policies that this program does not know, by the UID of
	// the object, as paths below the spec such as rules[0].matches[1].cookies. What they are in is
	// refused.
	Unknown map[types.UID][]string
}

// Service is what of a Service decides.
type Service struct {
	// External tells that it is of type ExternalName, which is not followed: it could lead to
	// any place.
	External bool
	// Ports are its ports for TCP, by number, and UDP those for UDP.
	Ports map[int32]Port
	UDP   map[int32]Port
}

// Port is a port of a Service.
type Port struct {
	// Name is its name. Empty: it has none.
	Name string
	// AppProtocol is what its endpoints speak. Empty: none is stated.
	AppProtocol string
}

// Bundle is what of a ConfigMap with certificates of authorities decides.
type Bundle struct {
	// Problem says why it cannot be used. Empty: it can.
	Problem string
}

// Secret is what of a Secret decides.
type Secret struct {
	// Problem says why its certificate cannot be used. Empty: it can. It holds no value of the
	// Secret.
	Problem string
}

// Graph is what a Gateway serves, and what its status and that of its routes say. What only
// the pods and the Service can tell is not in it: whether listeners and routes are served, and the
// addresses.
type Graph struct {
	// Listeners are those of the Gateway, in the order of its spec, and then those of the ListenerSets that it allows, in the
	// order of Sets.
	Listeners []*Listener
	// Sets are the ListenerSets that name the Gateway, in order of precedence: the oldest first, then by namespace and name.
	Sets []*Set
	// AttachedSets is how many of them are accepted.
	AttachedSets int32
	// Routes are those that name the Gateway or one of its sets as a parent, in order of precedence: the oldest
	// first, then by namespace and name. Of routes of the same name an HTTPRoute is first, and a GRPCRoute last.
	Routes []*Route
	// Rules are what the listeners serve, in order of precedence among equals. The Index of each is its
	// place here.
	Rules []Rule
	// Settings are those of backends that need other ones than the defaults.
	Settings map[model.BackendName]model.Settings
	// TLS are the backends that are reached with TLS.
	TLS map[model.BackendName]*BackendTLS
	// ClientCertificate is the Secret with the certificate that these are shown. Nil: they are shown none.
	ClientCertificate *types.NamespacedName
	// Policies are the BackendTLSPolicies for Services that the routes name, in order of precedence.
	Policies []*Policy
	// GatewayPolicies are those that name the Gateway, its ListenerSets or its routes, in order of precedence.
	GatewayPolicies []*GatewayPolicy
	// Accepted and ResolvedRefs are conditions of the Gateway.
	Accepted     metav1.Condition
	ResolvedRefs metav1.Condition
	// Insecure is the condition InsecureFrontendValidationMode. Nil: the Gateway has not got it.
	Insecure *metav1.Condition
}

// Certificates are the Secrets whose certificates are shown, to clients or to backends, each once.
func (g *Graph) Certificates() []types.NamespacedName {
	var names []types.NamespacedName
	add := func(name types.NamespacedName) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, l := range g.Listeners {
		if l.barred {
			continue
		}
		for _, name := range l.Certificates {
			add(name)
		}
	}
	if g.ClientCertificate != nil {
		add(*g.ClientCertificate)
	}
	return names
}

// Build computes the graph.
func Build(in Input) *Graph {
	b := &builder{
		in: in, grants: newGrants(in.Grants), generation: in.Gateway.Generation,
		settings: map[model.BackendName]model.Settings{}, tls: map[model.BackendName]*BackendTLS{}, firsts: map[int]bool{}, checker: table.NewChecker(),
	}
	b.judgePolicies()
	b.judgeGatewayPolicies()
	b.judgeSets()
	g := &Graph{Listeners: b.listeners(), Sets: b.sets, Settings: b.settings, TLS: b.tls}
	for _, route := range routesOf(in) {
		b.attach(g, route)
		if len(route.Parents) > 0 {
			g.Routes = append(g.Routes, route)
		}
	}
	for _, route := range g.Routes {
		g.Rules = append(g.Rules, b.rules(g, route)...)
	}
	for i := range g.Rules {
		g.Rules[i].Index = i
	}
	b.boundHealthChecks(g.Rules)
	refuseUnreturned(g)
	b.concludePolicies(g)
	b.concludeGatewayPolicies(g)
	b.conclude(g)
	b.concludeSets(g)
	return g
}

// builder has what the parts of the computation share.
type builder struct {
	in         Input
	grants     grants
	generation int64
	settings   map[model.BackendName]model.Settings
	tls        map[model.BackendName]*BackendTLS
	policies   []*Policy
	policyOf   map[target]*Policy
	// gatewayPolicies are in order of precedence, and layers what those of each place set.
	gatewayPolicies []*GatewayPolicy
	layers          map[place]*layer
	sets            []*Set
	setBy           map[types.NamespacedName]*Set
	firsts          map[int]bool // listeners for TCP or UDP that a route is attached to
	checker         *table.Checker
}

// Kind is the kind of a route.
type Kind string

// The kinds that are served.
const (
	HTTPRoute Kind = "HTTPRoute"
	GRPCRoute Kind = "GRPCRoute"
	TLSRoute  Kind = "TLSRoute"
	TCPRoute  Kind = "TCPRoute"
	UDPRoute  Kind = "UDPRoute"
)

// kinds are these, in order of precedence among routes that have the rest in common.
var kinds = []Kind{HTTPRoute, TLSRoute, TCPRoute, UDPRoute, GRPCRoute}

// Route is a route and what becomes of it.
type Route struct {
	Kind       Kind
	UID        types.UID
	Generation int64
	Name       types.NamespacedName
	// Parents are the parentRefs that name the Gateway or one of its ListenerSets, in the order of the spec.
	Parents []*Parent
	// SharesAffinity tells that a rule asks for sessions itself, and no policy in its place.
	SharesAffinity bool

	created   time.Time
	refs      []gatewayv1.ParentReference
	hostnames []gatewayv1.Hostname
	rules     []rule
	services  []types.NamespacedName // that it names and may use
	// unknownRefs are the faults of refs with unknown fields, by index.
	unknownRefs map[int]*fault
}

// Parent is a parentRef of a route that names the Gateway or one of its ListenerSets.
type Parent struct {
	// Ref is the parentRef as the spec has it.
	Ref gatewayv1.ParentReference
	// Listeners are indexes of the listeners that have the rules of the route by it. Where none of
	// its rules can be served as it is written, it is not accepted, and they answer 500 there.
	Listeners []int
	// Conditions are those of the entry in the status of the route: Accepted, ResolvedRefs, and
	// PartiallyInvalid where it is true.
	Conditions []metav1.Condition

	// Behind tells that all of its listeners have an older route that gets everything, as TCP and UDP know no other choice.
	Behind bool
	// Rivals are the routes that have matches of this one. Set by NoteRivals.
	Rivals Rivals
	// Refused tells that a rule is not served at one of its listeners because of a GatewayPolicy. Nil: all are.
	Refused *Refusal

	accepted metav1.Condition
	// gets tells that some requests come to the route. Set by NoteRivals.
	gets bool
}

// Refusal is why a rule is not served, as ConditionLive tells it.
type Refusal struct{ Reason, Message string }

// Accepted reports whether the route is attached to a listener by the parentRef.
func (p *Parent) Accepted() bool { return p.accepted.Status == metav1.ConditionTrue }

// routesOf brings routes of all kinds into one form and into order.
func routesOf(in Input) []*Route {
	routes := make([]*Route, 0, len(in.HTTPRoutes)+len(in.GRPCRoutes)+len(in.TLSRoutes)+len(in.TCPRoutes)+len(in.UDPRoutes))
	for _, of := range in.HTTPRoutes {
		routes = append(routes, newRoute(HTTPRoute, of, of.Spec.CommonRouteSpec, of.Spec.Hostnames, httpRules(of)))
	}
	for _, of := range in.GRPCRoutes {
		routes = append(routes, newRoute(GRPCRoute, of, of.Spec.CommonRouteSpec, of.Spec.Hostnames, grpcRules(of)))
	}
	for _, of := range in.TLSRoutes {
		routes = append(routes, newRoute(TLSRoute, of, of.Spec.CommonRouteSpec, of.Spec.Hostnames, tlsRules(of)))
	}
	for _, of := range in.TCPRoutes {
		routes = append(routes, newRoute(TCPRoute, of, of.Spec.CommonRouteSpec, nil, tcpRules(of)))
	}
	for _, of := range in.UDPRoutes {
		routes = append(routes, newRoute(UDPRoute, of, of.Spec.CommonRouteSpec, nil, udpRules(of)))
	}
	for _, route := range routes {
		route.refuseUnknown(in.Unknown[route.UID])
	}
	slices.SortStableFunc(routes, func(a, b *Route) int {
		return cmp.Or(
			a.created.Compare(b.created),
			cmp.Compare(a.Name.Namespace, b.Name.Namespace),
			cmp.Compare(a.Name.Name, b.Name.Name),
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
		)
	})
	return routes
}

func newRoute(kind Kind, of metav1.Object, spec gatewayv1.CommonRouteSpec, hostnames []gatewayv1.Hostname, rules []rule) *Route {
	return &Route{
		Kind: kind, UID: of.GetUID(), Generation: of.GetGeneration(),
		Name:    types.NamespacedName{Namespace: of.GetNamespace(), Name: of.GetName()},
		created: of.GetCreationTimestamp().Time, refs: spec.ParentRefs, hostnames: hostnames, rules: rules,
	}
}
