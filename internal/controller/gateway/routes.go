package gateway

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// routeKinds are the kinds of routes.
func routeKinds() []client.Object {
	return []client.Object{&gatewayv1.HTTPRoute{}, &gatewayv1.GRPCRoute{}, &gatewayv1.TLSRoute{}, &gatewayv1.TCPRoute{}, &gatewayv1.UDPRoute{}}
}

// routeLists are empty lists of each kind.
func routeLists() []client.ObjectList {
	return []client.ObjectList{&gatewayv1.HTTPRouteList{}, &gatewayv1.GRPCRouteList{}, &gatewayv1.TLSRouteList{}, &gatewayv1.TCPRouteList{}, &gatewayv1.UDPRouteList{}}
}

// listRoutes lists routes of every kind. With an error it returns those that could be listed.
func listRoutes(ctx context.Context, from client.Reader, options ...client.ListOption) ([]client.Object, error) {
	var routes []client.Object
	var errs []error
	for _, list := range routeLists() {
		if err := from.List(ctx, list, options...); err != nil {
			errs = append(errs, fmt.Errorf("list %T: %w", list, err))
			continue
		}
		errs = append(errs, meta.EachListItem(list, func(object runtime.Object) error {
			route, is := object.(client.Object)
			if !is {
				return fmt.Errorf("%T is no object", object)
			}
			routes = append(routes, route)
			return nil
		}))
	}
	return routes, errors.Join(errs...)
}

// watchRoutes tells a controller of the events of routes of every kind.
func (k *kinds) watchRoutes(controller func(source.Source) error, through handler.EventHandler) error {
	var errs []error
	for _, kind := range routeKinds() {
		errs = append(errs, k.objects.Watch(controller, kind, through))
	}
	return errors.Join(errs...)
}

// kindOf is the kind of a route. Objects of the cache do not say it themselves.
func kindOf(object client.Object) gatewayapi.Kind {
	switch object.(type) {
	case *gatewayv1.HTTPRoute:
		return gatewayapi.HTTPRoute
	case *gatewayv1.GRPCRoute:
		return gatewayapi.GRPCRoute
	case *gatewayv1.TLSRoute:
		return gatewayapi.TLSRoute
	case *gatewayv1.TCPRoute:
		return gatewayapi.TCPRoute
	case *gatewayv1.UDPRoute:
		return gatewayapi.UDPRoute
	default:
		return ""
	}
}

// addRoute adds a route to what the graph is built of.
func addRoute(in *gatewayapi.Input, object client.Object) {
	switch route := object.(type) {
	case *gatewayv1.HTTPRoute:
		in.HTTPRoutes = append(in.HTTPRoutes, route)
	case *gatewayv1.GRPCRoute:
		in.GRPCRoutes = append(in.GRPCRoutes, route)
	case *gatewayv1.TLSRoute:
		in.TLSRoutes = append(in.TLSRoutes, route)
	case *gatewayv1.TCPRoute:
		in.TCPRoutes = append(in.TCPRoutes, route)
	case *gatewayv1.UDPRoute:
		in.UDPRoutes = append(in.UDPRoutes, route)
	}
}

// parentRefs are those of a route.
func parentRefs(object client.Object) []gatewayv1.ParentReference {
	switch route := object.(type) {
	case *gatewayv1.HTTPRoute:
		return route.Spec.ParentRefs
	case *gatewayv1.GRPCRoute:
		return route.Spec.ParentRefs
	case *gatewayv1.TLSRoute:
		return route.Spec.ParentRefs
	case *gatewayv1.TCPRoute:
		return route.Spec.ParentRefs
	case *gatewayv1.UDPRoute:
		return route.Spec.ParentRefs
	default:
		return nil
	}
}

// parentStatuses are the entries of a route.
func parentStatuses(object client.Object) *[]gatewayv1.RouteParentStatus {
	switch route := object.(type) {
	case *gatewayv1.HTTPRoute:
		return &route.Status.Parents
	case *gatewayv1.GRPCRoute:
		return &route.Status.Parents
	case *gatewayv1.TLSRoute:
		return &route.Status.Parents
	case *gatewayv1.TCPRoute:
		return &route.Status.Parents
	case *gatewayv1.UDPRoute:
		return &route.Status.Parents
	default:
		return new([]gatewayv1.RouteParentStatus)
	}
}

// backendsOf are the Services that a route names.
func backendsOf(object client.Object) []types.NamespacedName {
	switch route := object.(type) {
	case *gatewayv1.HTTPRoute:
		return gatewayapi.ServicesOfHTTPRoute(route)
	case *gatewayv1.GRPCRoute:
		return gatewayapi.ServicesOfGRPCRoute(route)
	case *gatewayv1.TLSRoute:
		return gatewayapi.ServicesOfTLSRoute(route)
	case *gatewayv1.TCPRoute:
		return gatewayapi.ServicesOfTCPRoute(route)
	case *gatewayv1.UDPRoute:
		return gatewayapi.ServicesOfUDPRoute(route)
	default:
		return nil
	}
}
