package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
		Gateway: s.gateway, ReservedPorts: []int32{desired.AdminPort}, Only: r.namespaces,
		Namespaces: map[string]map[string]string{}, Services: map[types.NamespacedName]graph.Service{}, Secrets: map[types.NamespacedName]graph.Secret{},
	}
	if err := r.loadSets(ctx, s); err != nil {
		return err
	}
	if err := r.loadRoutes(ctx, s); err != nil {
		return err
	}
	var err error
	if s.input.Grants, err = r.kinds.grants(ctx, r.kinds.objects, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ReferenceGrants: %w", err)
	}
	for _, route := range s.routes() {
		if err := r.loadReferences(ctx, s, route); err != nil {
			return err
		}
	}
	return errors.Join(r.loadPolicies(ctx, s), r.loadGatewayPolicies(ctx, s))
}

// loadRoutes reads the routes that name the Gateway or one of its sets, or have an entry of ours for one of them.
func (r *Reconciler) loadRoutes(ctx context.Context, s *scope) error {
	parents := []string{client.ObjectKeyFromObject(s.gateway).String()}
	for _, set := range s.input.ListenerSets {
		parents = append(parents, ofSet(client.ObjectKeyFromObject(set)))
	}
	seen := map[types.UID]bool{}
	for _, parent := range parents {
		httpRoutes, grpcRoutes := &gatewayv1.HTTPRouteList{}, &gatewayv1.GRPCRouteList{}
		for _, list := range []client.ObjectList{httpRoutes, grpcRoutes} {
			if err := r.kinds.objects.List(ctx, list, client.MatchingFields{indexParent: parent}, client.UnsafeDisableDeepCopy); err != nil {
				return fmt.Errorf("list %T: %w", list, err)
			}
		}
		for i := range httpRoutes.Items {
			if route := &httpRoutes.Items[i]; !seen[route.UID] {
				seen[route.UID] = true
				s.input.HTTPRoutes = append(s.input.HTTPRoutes, route)
			}
		}
		for i := range grpcRoutes.Items {
			if route := &grpcRoutes.Items[i]; !seen[route.UID] {
				seen[route.UID] = true
				s.input.GRPCRoutes = append(s.input.GRPCRoutes, route)
			}
		}
	}
	return nil
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
	if err := r.loadNamespace(ctx, s, route.GetNamespace()); err != nil {
		return err
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

// loadNamespace reads the labels of a namespace.
func (r *Reconciler) loadNamespace(ctx context.Context, s *scope, name string) error {
	if _, known := s.input.Namespaces[name]; known {
		return nil
	}
	namespace := Namespace()
	if err := r.kinds.objects.Get(ctx, types.NamespacedName{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Namespace %q: %w", name, err)
	}
	s.input.Namespaces[name] = namespace.Labels
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

// parentsOf are the Gateways and the ListenerSets that a route names, or has an entry of ours for.
func parentsOf(object client.Object) (gateways, sets []types.NamespacedName) {
	var refs []gatewayv1.ParentReference
	var entries []gatewayv1.RouteParentStatus
	switch route := object.(type) {
	case *gatewayv1.HTTPRoute:
		refs, entries = route.Spec.ParentRefs, route.Status.Parents
	case *gatewayv1.GRPCRoute:
		refs, entries = route.Spec.ParentRefs, route.Status.Parents
	}
	add := func(ref gatewayv1.ParentReference) {
		if name, is := graph.GatewayOf(ref, object.GetNamespace()); is && !slices.Contains(gateways, name) {
			gateways = append(gateways, name)
		}
		if name, is := graph.SetOf(ref, object.GetNamespace()); is && !slices.Contains(sets, name) {
			sets = append(sets, name)
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
	return gateways, sets
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
