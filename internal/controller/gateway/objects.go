package gateway

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// loadInput reads what the graph is built of, but for the Secrets.
func (r *Reconciler) loadInput(ctx context.Context, s *scope) error {
	s.input = gatewayapi.Input{
		Gateway: s.gateway, ReservedPorts: desired.ReservedPorts(), Only: r.namespaces,
		Namespaces: map[string]map[string]string{}, Services: map[types.NamespacedName]gatewayapi.Service{}, Secrets: map[types.NamespacedName]gatewayapi.Secret{},
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
	for _, route := range s.routes {
		if err := r.loadReferences(ctx, s, route); err != nil {
			return err
		}
	}
	if err := r.loadGatewayPolicies(ctx, s); err != nil {
		return err
	}
	return r.loadPolicies(ctx, s)
}

// loadRoutes reads the routes that name the Gateway or one of its sets, or have an entry of ours for one of them.
func (r *Reconciler) loadRoutes(ctx context.Context, s *scope) error {
	parents := []string{client.ObjectKeyFromObject(s.gateway).String()}
	for _, set := range s.input.ListenerSets {
		parents = append(parents, ofSet(client.ObjectKeyFromObject(set)))
	}
	seen := map[types.UID]bool{}
	for _, parent := range parents {
		found, err := listRoutes(ctx, r.kinds.objects, client.MatchingFields{indexParent: parent}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return err
		}
		for _, route := range found {
			if seen[route.GetUID()] {
				continue
			}
			seen[route.GetUID()] = true
			s.routes = append(s.routes, route)
			addRoute(&s.input, route)
		}
	}
	return nil
}

// loadReferences reads the namespace of a route, and the Services that it names.
func (r *Reconciler) loadReferences(ctx context.Context, s *scope, route client.Object) error {
	if err := r.loadNamespace(ctx, s, route.GetNamespace()); err != nil {
		return err
	}
	return r.loadServices(ctx, s, backendsOf(route))
}

// loadServices reads Services, as far as they are not known.
func (r *Reconciler) loadServices(ctx context.Context, s *scope, names []types.NamespacedName) error {
	for _, name := range names {
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

func serviceOf(service *corev1.Service) gatewayapi.Service {
	made := gatewayapi.Service{External: service.Spec.Type == corev1.ServiceTypeExternalName, Ports: map[int32]gatewayapi.Port{}, UDP: map[int32]gatewayapi.Port{}}
	for _, port := range service.Spec.Ports {
		switch port.Protocol {
		case "", corev1.ProtocolTCP:
			made.Ports[port.Port] = gatewayapi.Port{Name: port.Name, AppProtocol: children.Or(port.AppProtocol, "")}
		case corev1.ProtocolUDP:
			made.UDP[port.Port] = gatewayapi.Port{Name: port.Name}
		}
	}
	return made
}

// parentsOf are the Gateways and the ListenerSets that a route names, or has an entry of ours for.
func parentsOf(object client.Object) (gateways, sets []types.NamespacedName) {
	refs, entries := parentRefs(object), *parentStatuses(object)
	add := func(ref gatewayv1.ParentReference) {
		if name, is := gatewayapi.GatewayOf(ref, object.GetNamespace()); is && !slices.Contains(gateways, name) {
			gateways = append(gateways, name)
		}
		if name, is := gatewayapi.SetOf(ref, object.GetNamespace()); is && !slices.Contains(sets, name) {
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
