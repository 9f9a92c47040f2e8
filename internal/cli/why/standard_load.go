package why

import (
	"context"
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	standarddesired "github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// loadStandardGateway reads everything that the tree of a Gateway of the Gateway API needs.
func loadStandardGateway(ctx context.Context, c *command.AnyClients, asked named) (explained, error) {
	gateway, err := decode[gatewayv1.Gateway](asked.object)
	if err != nil {
		return nil, err
	}
	s := &standardGatewayFindings{
		standardFindings: newStandardFindings(c.Clients, gateway.Namespace), gateway: gateway, family: &family{asked: asked.relative()},
	}
	s.gateways[types.NamespacedName{Namespace: gateway.Namespace, Name: gateway.Name}] = gateway
	steps := append([]step{classStep(ctx, c, &s.standardFindings, gateway)},
		workloadSteps(ctx, c.Clients, s.facts(), standarddesired.Name(gateway), standarddesired.Selector(gateway))...)
	steps = append(steps, step{"GatewayParameters", func() error { return loadParameters(ctx, c, s) }})
	for _, kind := range standardRoutes {
		steps = append(steps, step{kind + "s", func() error { return loadRoutesOf(ctx, c, s, kind) }})
	}
	for _, name := range gatewayapi.Certificates(gateway) {
		steps = append(steps, grantsStep(ctx, c, &s.standardFindings, name.Namespace))
	}
	if err := s.read(s.family.ref(), append(steps, eventsStep(ctx, c.Clients, s.facts()))); err != nil {
		return nil, err
	}
	if s.ours() {
		return s, nil
	}
	// Whose children these are, only owner references tell.
	s.deployment, s.service = nil, nil
	if s.family, err = loadFamily(ctx, c, asked.object, asked.kind, maxWhyObjects); err != nil {
		return nil, err
	}
	s.unreadable = append(s.unreadable, s.family.unreadable...)
	return s, nil
}

// loadStandardRoute reads a route of the Gateway API with what it names: its parents, and its backends.
func loadStandardRoute(ctx context.Context, c *command.AnyClients, asked named) (explained, error) {
	route, err := newStandardRoute(asked.object, asked.kind.Kind)
	if err != nil {
		return nil, err
	}
	s := &standardRouteFindings{
		standardFindings: newStandardFindings(c.Clients, route.Namespace), asked: asked.relative(), route: route,
		services: map[types.NamespacedName]*serviceFinding{},
	}
	var steps []step
	for _, ref := range route.refs {
		if name, is := gatewayapi.GatewayOf(ref, route.Namespace); is {
			steps = append(steps, step{fmt.Sprintf("Gateway %q", name), func() error { return loadParent(ctx, c, s, name) }})
		}
	}
	var namespaces []string
	for _, use := range route.backends {
		if !slices.Contains(namespaces, use.name.Namespace) {
			namespaces = append(namespaces, use.name.Namespace)
		}
	}
	for _, namespace := range namespaces {
		of := ""
		if namespace != c.Namespace {
			of = fmt.Sprintf(" of namespace %q", namespace)
			steps = append(steps, grantsStep(ctx, c, &s.standardFindings, namespace))
		}
		steps = append(steps,
			step{"Services" + of, func() error { return loadServices(ctx, c, s, namespace) }},
			step{"EndpointSlices" + of, func() error { return loadSlices(ctx, c, s, namespace) }},
			step{"pods of backends" + of, func() error { return loadPods(ctx, c, s, namespace) }},
		)
	}
	if err := s.read(s.ref(), append(steps, eventsStep(ctx, c.Clients, s.facts()))); err != nil {
		return nil, err
	}
	return s, nil
}

// loadParent reads a Gateway and its class.
func loadParent(ctx context.Context, c *command.AnyClients, s *standardRouteFindings, name types.NamespacedName) error {
	kind, served, err := servedKind(c, command.KindGateway)
	if _, known := s.gateways[name]; known || err != nil {
		return err
	}
	if !served {
		s.gateways[name] = nil
		return nil
	}
	gateway, err := get[gatewayv1.Gateway](ctx, c, kind, name)
	if err != nil {
		return err
	}
	s.gateways[name] = gateway
	if gateway == nil {
		return nil
	}
	return s.read(s.ref(), []step{classStep(ctx, c, &s.standardFindings, gateway)})
}

// classStep reads the class of a Gateway.
func classStep(ctx context.Context, c *command.AnyClients, s *standardFindings, gateway *gatewayv1.Gateway) step {
	name := string(gateway.Spec.GatewayClassName)
	return step{fmt.Sprintf("GatewayClass %q", name), func() error {
		kind, served, err := servedKind(c, "GatewayClass")
		if err != nil {
			return err
		}
		if !served {
			s.classes[name] = nil
			return nil
		}
		class, err := get[gatewayv1.GatewayClass](ctx, c, kind, types.NamespacedName{Name: name})
		if err == nil {
			s.classes[name] = class
		}
		return err
	}}
}

// loadParameters finds which GatewayParameters of the Gateway and its class do not exist.
func loadParameters(ctx context.Context, c *command.AnyClients, s *standardGatewayFindings) error {
	var named []missingParameters
	const kind = "GatewayParameters"
	if class := s.classes[string(s.gateway.Spec.GatewayClassName)]; class != nil {
		if ref := class.Spec.ParametersRef; ref != nil && ref.Group == slipwayv1alpha1.GroupName && ref.Kind == kind &&
			ref.Namespace != nil {
			named = append(named, missingParameters{
				fmt.Sprintf("spec.parametersRef of GatewayClass %q", class.Name),
				types.NamespacedName{Namespace: string(*ref.Namespace), Name: ref.Name},
			})
		}
	}
	if in := s.gateway.Spec.Infrastructure; in != nil {
		if ref := in.ParametersRef; ref != nil && ref.Group == slipwayv1alpha1.GroupName && ref.Kind == kind {
			named = append(named, missingParameters{
				"spec.infrastructure.parametersRef", types.NamespacedName{Namespace: s.gateway.Namespace, Name: ref.Name},
			})
		}
	}
	for _, one := range named {
		_, err := c.Slipway.SlipwayV1alpha1().GatewayParameters(one.name.Namespace).Get(ctx, one.name.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			s.parameters = append(s.parameters, one)
		case err != nil:
			return err
		}
	}
	return nil
}

// loadRoutesOf reads the routes of a kind that name the Gateway. Routes of every namespace may do so.
func loadRoutesOf(ctx context.Context, c *command.AnyClients, s *standardGatewayFindings, name string) error {
	kind, served, err := servedKind(c, name)
	if err != nil || !served {
		return err
	}
	all, err := command.List(ctx, c, kind, "", func(object *unstructured.Unstructured) (*standardRoute, error) {
		return newStandardRoute(object, name)
	})
	if apierrors.IsForbidden(err) {
		all, err = command.List(ctx, c, kind, c.Namespace, func(object *unstructured.Unstructured) (*standardRoute, error) {
			return newStandardRoute(object, name)
		})
		if err == nil {
			s.unreadable = append(s.unreadable, name+"s of other namespaces")
		}
	}
	if err != nil {
		return err
	}
	of := types.NamespacedName{Namespace: s.gateway.Namespace, Name: s.gateway.Name}
	for _, route := range all {
		if slices.ContainsFunc(route.refs, func(ref gatewayv1.ParentReference) bool {
			return gatewayapi.IsParent(ref, route.Namespace, of)
		}) {
			s.routes = append(s.routes, route)
		}
	}
	return nil
}

// grantsStep reads the ReferenceGrants of a namespace.
func grantsStep(ctx context.Context, c *command.AnyClients, s *standardFindings, namespace string) step {
	return step{fmt.Sprintf("ReferenceGrants of namespace %q", namespace), func() error {
		kind, served, err := servedKind(c, "ReferenceGrant")
		if _, known := s.grants[namespace]; known || err != nil {
			return err
		}
		if !served {
			s.grants[namespace] = nil
			return nil
		}
		grants, err := command.List(ctx, c, kind, namespace, decode[gatewayv1.ReferenceGrant])
		if err == nil {
			s.grants[namespace] = grants
		}
		return err
	}}
}

// loadServices reads the backends of the route that are in a namespace.
func loadServices(ctx context.Context, c *command.AnyClients, s *standardRouteFindings, namespace string) error {
	for _, use := range s.route.backends {
		if _, known := s.services[use.name]; known || use.name.Namespace != namespace || len(s.services) == maxBackends {
			continue
		}
		service, err := orNil(c.Kube.CoreV1().Services(namespace).Get(ctx, use.name.Name, metav1.GetOptions{}))
		if err != nil {
			return err
		}
		s.services[use.name] = &serviceFinding{service: service}
	}
	return nil
}

// loadSlices reads the endpoints of these backends.
func loadSlices(ctx context.Context, c *command.AnyClients, s *standardRouteFindings, namespace string) error {
	for name, found := range s.services {
		if found.service == nil || name.Namespace != namespace {
			continue
		}
		of := labels.Set{discoveryv1.LabelServiceName: name.Name}.String()
		slices, err := c.Kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: of})
		if err != nil {
			return err
		}
		found.slices, found.slicesRead = slices.Items, true
	}
	return nil
}

// loadPods reads the pods of those without a ready endpoint.
func loadPods(ctx context.Context, c *command.AnyClients, s *standardRouteFindings, namespace string) error {
	for name, found := range s.services {
		if found.service == nil || name.Namespace != namespace || !found.slicesRead || readyEndpoints(found.slices) > 0 ||
			len(found.service.Spec.Selector) == 0 {
			continue
		}
		pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx,
			metav1.ListOptions{LabelSelector: labels.SelectorFromSet(found.service.Spec.Selector).String()})
		if err != nil {
			return err
		}
		found.pods, found.podsRead = pods.Items, true
	}
	return nil
}

// newStandardRoute reads a route.
func newStandardRoute(object *unstructured.Unstructured, kind string) (*standardRoute, error) {
	switch kind {
	case kindTLSRoute, kindTCPRoute, kindUDPRoute:
		return newStreamRoute(object, kind)
	case kindGRPCRoute:
		of, err := decode[gatewayv1.GRPCRoute](object)
		if err != nil {
			return nil, err
		}
		route := &standardRoute{ObjectMeta: of.ObjectMeta, kind: kind, refs: of.Spec.ParentRefs, status: of.Status.Parents}
		for i := range of.Spec.Rules {
			rule, field := &of.Spec.Rules[i], fmt.Sprintf("rules[%d]", i)
			for k := range rule.BackendRefs {
				route.use(fmt.Sprintf("%s.backendRefs[%d]", field, k), rule.BackendRefs[k].BackendRef)
			}
			for k := range rule.Filters {
				route.mirror(fmt.Sprintf("%s.filters[%d]", field, k), rule.Filters[k].RequestMirror)
			}
		}
		return route, nil
	}
	of, err := decode[gatewayv1.HTTPRoute](object)
	if err != nil {
		return nil, err
	}
	route := &standardRoute{ObjectMeta: of.ObjectMeta, kind: kind, refs: of.Spec.ParentRefs, status: of.Status.Parents}
	for i := range of.Spec.Rules {
		rule, field := &of.Spec.Rules[i], fmt.Sprintf("rules[%d]", i)
		for k := range rule.BackendRefs {
			route.use(fmt.Sprintf("%s.backendRefs[%d]", field, k), rule.BackendRefs[k].BackendRef)
		}
		for k := range rule.Filters {
			route.mirror(fmt.Sprintf("%s.filters[%d]", field, k), rule.Filters[k].RequestMirror)
		}
	}
	return route, nil
}

// newStreamRoute reads a TLSRoute, or one of the kinds that have the same form without hostnames.
func newStreamRoute(object *unstructured.Unstructured, kind string) (*standardRoute, error) {
	of, err := decode[gatewayv1.TLSRoute](object)
	if err != nil {
		return nil, err
	}
	route := &standardRoute{ObjectMeta: of.ObjectMeta, kind: kind, refs: of.Spec.ParentRefs, status: of.Status.Parents}
	for i := range of.Spec.Rules {
		for k, ref := range of.Spec.Rules[i].BackendRefs {
			route.use(fmt.Sprintf("rules[%d].backendRefs[%d]", i, k), ref)
		}
	}
	return route, nil
}

// use adds a backend. What is no Service only the status of the route can tell about.
func (r *standardRoute) use(field string, ref gatewayv1.BackendRef) {
	isService := (ref.Group == nil || *ref.Group == "") && (ref.Kind == nil || *ref.Kind == "Service")
	if !isService || ref.Port == nil {
		return
	}
	name := types.NamespacedName{Namespace: r.Namespace, Name: string(ref.Name)}
	if ref.Namespace != nil {
		name.Namespace = string(*ref.Namespace)
	}
	r.backends = append(r.backends, backendUse{field: field, name: name, port: *ref.Port, idle: ref.Weight != nil && *ref.Weight == 0})
}

// mirror adds a backend that gets copies of requests. Nobody waits for its endpoints.
func (r *standardRoute) mirror(field string, filter *gatewayv1.HTTPRequestMirrorFilter) {
	if filter != nil {
		none := int32(0)
		r.use(field+".requestMirror.backendRef", gatewayv1.BackendRef{BackendObjectReference: filter.BackendRef, Weight: &none})
	}
}

// decode reads an object into its Go type.
func decode[T any](object *unstructured.Unstructured) (*T, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return nil, fmt.Errorf("read %s: %w", command.ObjectRef(object.GetKind(), object.GetName()), err)
	}
	return into, nil
}

// get reads an object. It returns nil if there is none.
func get[T any](ctx context.Context, c *command.AnyClients, kind command.KindInfo, name types.NamespacedName) (*T, error) {
	object, err := orNil(c.Read(ctx, kind, name.Namespace, name.Name))
	if err != nil || object == nil {
		return nil, err
	}
	return decode[T](object)
}
