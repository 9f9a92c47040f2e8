package apigateway

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// kindRecheck is when to look again for a kind that the cluster does not have. Nothing
// is watched that tells when it is installed.
const kindRecheck = 10 * time.Second

// gatewayAPI has HTTPRoutes and Gateways, which a cluster need not have. They are looked for at the start, when an APIGateway
// asks for an HTTPRoute, and every minute, since an HTTPRoute that another operator made may be there to be deleted.
type gatewayAPI struct {
	kinds *optional.Kinds
	// live reads from the API server.
	live client.Reader
	// fresh is asked before a write.
	fresh *apply.Freshness
	// repaired is told of drift that was undone.
	repaired func(owner client.Object, what string)
	// running is there from when the kinds were found.
	running atomic.Pointer[apply.Applier]
}

// setup has the kinds looked for, and their events told to the controller.
func (g *gatewayAPI) setup(mgr ctrl.Manager, options Options, watch func(source.Source) error) error {
	var err error
	g.kinds, err = optional.New(mgr, optional.Options{
		Budget: options.GatewayAPI, NewCache: options.NewCache, Required: []client.Object{&gatewayv1.HTTPRoute{}, &gatewayv1.Gateway{}},
	})
	if err != nil {
		return err
	}
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &slipwayv1alpha1.APIGateway{},
		handler.OnlyControllerOwner())
	if err := errors.Join(
		g.kinds.Watch(watch, &gatewayv1.HTTPRoute{}, owner),
		g.kinds.Watch(watch, &gatewayv1.Gateway{}, attached(mgr.GetClient())),
	); err != nil {
		return err
	}
	return g.kinds.Setup()
}

// applier returns what applies HTTPRoutes, nil while the kinds were not found.
func (g *gatewayAPI) applier() (*apply.Applier, error) {
	if found := g.running.Load(); found != nil || !g.kinds.Running() {
		return found, nil
	}
	in, err := g.kinds.Client(&gatewayv1.HTTPRoute{})
	if err != nil {
		return nil, err
	}
	g.running.CompareAndSwap(nil,
		&apply.Applier{Client: in, Live: g.live, FieldManager: FieldManager, Fresh: g.fresh, Repaired: g.repaired})
	return g.running.Load(), nil
}

// find looks for the kinds, and reports whether the cluster has them.
func (g *gatewayAPI) find() (bool, error) {
	if g.running.Load() != nil {
		return true, nil
	}
	if err := g.kinds.Find(); err != nil {
		return false, err
	}
	return g.kinds.Running(), nil
}

// load reads the HTTPRoutes, and the Gateway that they attach to.
func (g *gatewayAPI) load(ctx context.Context, s *scope) error {
	var err error
	if s.gatewayAPI, err = g.applier(); err != nil || s.gatewayAPI == nil {
		// What asks for an HTTPRoute starts the cache, and what does not has none.
		return err
	}
	if err := s.loadHTTPRoutes(ctx); err != nil {
		return err
	}
	key := parentKey(s.gateway)
	if key.Name == "" {
		return nil
	}
	if !g.kinds.Watches(key.Namespace) {
		s.parentNotWatched = true
		return nil
	}
	if err := g.kinds.Get(ctx, key, s.parent); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Gateway %q: %w", key, err)
	}
	return nil
}

// loadHTTPRoutes reads those that there are, and has room for those that may be made. One
// that the APIGateway controls under another name was called so by another release.
func (s *scope) loadHTTPRoutes(ctx context.Context) error {
	list := &gatewayv1.HTTPRouteList{}
	if err := s.gatewayAPI.Client.List(ctx, list, client.InNamespace(s.gateway.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the HTTPRoutes: %w", err)
	}
	s.httpRoutes = make([]*gatewayv1.HTTPRoute, desired.MaxHTTPRoutes)
	places := make(map[string]int, len(s.httpRoutes))
	for place := range s.httpRoutes {
		places[desired.HTTPRouteName(s.gateway, place)] = place
		if place < desired.HTTPRoutesNeeded(s.gateway) {
			s.httpRoutes[place] = &gatewayv1.HTTPRoute{}
		}
	}
	for i := range list.Items {
		route := &list.Items[i]
		if place, ok := places[route.Name]; ok && s.gatewayAPI.Ours(s.gateway, route) {
			s.httpRoutes[place] = route.DeepCopy()
		} else if !ok && metav1.IsControlledBy(route, s.gateway) {
			s.formerHTTPRoutes = append(s.formerHTTPRoutes, route.DeepCopy())
		}
	}
	return nil
}

// apply makes the HTTPRoutes, and deletes those that an earlier spec asked for.
func (g *gatewayAPI) apply(ctx context.Context, s *scope) error {
	if s.exposeRefusal != nil {
		return nil // what was permitted once serves on as it is
	}
	wanted := desired.HTTPRoutes(s.gateway, s.hostnames(), s.withheld)
	if len(wanted) == 0 {
		return g.deleteUnwanted(ctx, s, nil)
	}
	found, err := g.find()
	if err != nil {
		return err
	}
	if !found {
		return outcome.Blockedf(kindRecheck, slipwayv1alpha1.ReasonKindNotFound,
			"spec.expose.type is HTTPRoute, and the cluster does not have the kinds HTTPRoute and Gateway of %s/%s: install the Gateway "+
				"API or choose another type",
			gatewayv1.GroupName, gatewayv1.GroupVersion.Version)
	}
	if s.gatewayAPI == nil {
		// Found after this reconcile has read: it does not know the Gateway, which may be there.
		return outcome.StaleCache("the Gateway API")
	}
	var errs []error
	for place, route := range wanted {
		if route != nil {
			_, err := s.gatewayAPI.Apply(ctx, s.gateway, apply.Child{Desired: route, Current: s.httpRoutes[place]})
			errs = append(errs, err)
		}
	}
	// Last, and only when what takes their place is there.
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return g.deleteUnwanted(ctx, s, wanted)
}

// deleteUnwanted deletes the HTTPRoutes that are not among the wanted ones.
func (g *gatewayAPI) deleteUnwanted(ctx context.Context, s *scope, wanted []*gatewayv1ac.HTTPRouteApplyConfiguration) error {
	var errs []error
	for place, route := range s.httpRoutes {
		if exists(route) && (place >= len(wanted) || wanted[place] == nil) {
			s.lingers = true
			errs = append(errs, s.gatewayAPI.Delete(ctx, s.gateway, route))
		}
	}
	for _, route := range s.formerHTTPRoutes {
		s.lingers = true
		errs = append(errs, s.gatewayAPI.Delete(ctx, s.gateway, route))
	}
	return errors.Join(errs...)
}

func exists(route *gatewayv1.HTTPRoute) bool { return route != nil && route.UID != "" }

// hostnames are the hosts of the HTTPRoutes, each at its place, up to the last there is.
func (s *scope) hostnames() [][]string {
	var places [][]string
	for place, route := range s.httpRoutes {
		if !exists(route) || !route.DeletionTimestamp.IsZero() {
			continue
		}
		for len(places) <= place {
			places = append(places, nil)
		}
		for _, host := range route.Spec.Hostnames {
			places[place] = append(places[place], string(host))
		}
	}
	return places
}

// parentKey names the Gateway that an APIGateway attaches to; it is empty where it does
// not.
func parentKey(gateway *slipwayv1alpha1.APIGateway) types.NamespacedName {
	if desired.ExposeType(gateway) != slipwayv1alpha1.ExposeHTTPRoute || gateway.Spec.Expose.Gateway == nil {
		return types.NamespacedName{}
	}
	parent := gateway.Spec.Expose.Gateway
	key := types.NamespacedName{Namespace: parent.Namespace, Name: parent.Name}
	if key.Namespace == "" {
		key.Namespace = gateway.Namespace
	}
	return key
}

func parentIndex(object client.Object) []string {
	gateway, ok := object.(*slipwayv1alpha1.APIGateway)
	if !ok {
		return nil
	}
	key := parentKey(gateway)
	if key.Name == "" {
		return nil
	}
	return []string{key.String()}
}

// attached enqueues the APIGateways that attach to a Gateway.
func attached(reader client.Reader) handler.EventHandler {
	return watch.Referrers{
		Reader: reader, List: &slipwayv1alpha1.APIGatewayList{}, Index: indexParent,
		Values: func(object client.Object) []string { return []string{client.ObjectKeyFromObject(object).String()} },
	}.Handler()
}
