package gateway

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gatewayapi/graph"
	"github.com/slipway-dev/slipway/internal/kit/children"
)

// loadInput reads what the graph is built of, but for the Secrets.
func (r *Reconciler) loadInput(ctx context.Context, s *scope) error {
	s.input = graph.Input{
		Gateway: s.gateway, ReservedPorts: []int32{desired.AdminPort},
		Namespaces: map[string]map[string]string{}, Services: map[types.NamespacedName]graph.Service{}, Secrets: map[types.NamespacedName]graph.Secret{},
	}
	named := client.MatchingFields{indexParent: client.ObjectKeyFromObject(s.gateway).String()}
	httpRoutes, grpcRoutes := &gatewayv1.HTTPRouteList{}, &gatewayv1.GRPCRouteList{}
	for _, list := range []client.ObjectList{httpRoutes, grpcRoutes} {
		if err := r.kinds.objects.List(ctx, list, named, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	var err error
	if s.input.Grants, err = r.kinds.grants(ctx, r.kinds.objects, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ReferenceGrants: %w", err)
	}
	for i := range httpRoutes.Items {
		s.input.HTTPRoutes = append(s.input.HTTPRoutes, &httpRoutes.Items[i])
	}
	for i := range grpcRoutes.Items {
		s.input.GRPCRoutes = append(s.input.GRPCRoutes, &grpcRoutes.Items[i])
	}
	for _, route := range s.routes() {
		if err := r.loadReferences(ctx, s, route); err != nil {
			return err
		}
	}
	return r.loadPolicies(ctx, s)
}

// routes are those of either kind.
func (s *scope) routes() []client.Object {
	all := make([]client.Object, 0, len(s.input.HTTPRoutes)+len(s.input.GRPCRoutes))
	for _, route := range s.input.HTTPRoutes {
		all = append(all, route)
	}
	for _, route := range s.input.GRPCRoutes {
		all = append(all, route)
	}
	return all
}

// loadReferences reads the namespace of a route, and the Services that it names.
func (r *Reconciler) loadReferences(ctx context.Context, s *scope, route client.Object) error {
	if _, known := s.input.Namespaces[route.GetNamespace()]; !known {
		namespace := Namespace()
		if err := r.kinds.objects.Get(ctx, types.NamespacedName{Name: route.GetNamespace()}, namespace); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read Namespace %q: %w", route.GetNamespace(), err)
		}
		s.input.Namespaces[route.GetNamespace()] = namespace.Labels
	}
	for _, name := range backendsOf(route) {
		if _, known := s.input.Services[name]; known {
			continue
		}
		service := &corev1.Service{}
		err := r.kinds.objects.Get(ctx, name, service, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read Service %q: %w", name, err)
		}
		if err == nil {
			s.input.Services[name] = serviceOf(service)
		}
	}
	return nil
}

func serviceOf(service *corev1.Service) graph.Service {
	made := graph.Service{External: service.Spec.Type == corev1.ServiceTypeExternalName, Ports: map[int32]graph.Port{}}
	for _, port := range service.Spec.Ports {
		if port.Protocol == "" || port.Protocol == corev1.ProtocolTCP {
			made.Ports[port.Port] = graph.Port{Name: port.Name, AppProtocol: children.Or(port.AppProtocol, "")}
		}
	}
	return made
}

// parentsOf are the Gateways that a route names, or has an entry of ours for.
func parentsOf(object client.Object) []types.NamespacedName {
	var refs []gatewayv1.ParentReference
	var entries []gatewayv1.RouteParentStatus
	switch route := object.(type) {
	case *gatewayv1.HTTPRoute:
		refs, entries = route.Spec.ParentRefs, route.Status.Parents
	case *gatewayv1.GRPCRoute:
		refs, entries = route.Spec.ParentRefs, route.Status.Parents
	}
	seen := map[types.NamespacedName]bool{}
	var found []types.NamespacedName
	add := func(ref gatewayv1.ParentReference) {
		if name, is := graph.GatewayOf(ref, object.GetNamespace()); is && !seen[name] {
			seen[name] = true
			found = append(found, name)
		}
	}
	for _, ref := range refs {
		add(ref)
	}
	for i := range entries {
		if entries[i].ControllerName == Controller {
			add(entries[i].ParentRef)
		}
	}
	return found
}

// backendsOf are the Services that a route names.
func backendsOf(object client.Object) []types.NamespacedName {
	switch route := object.(type) {
	case *gatewayv1.HTTPRoute:
		return graph.ServicesOfHTTPRoute(route)
	case *gatewayv1.GRPCRoute:
		return graph.ServicesOfGRPCRoute(route)
	default:
		return nil
	}
}
