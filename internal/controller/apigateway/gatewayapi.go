package apigateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// kindRecheck is when to look again for a kind that the cluster does not have. Nothing
// is watched that tells when it is installed.
const kindRecheck = 10 * time.Second

// kindSearch is how often every operator looks for the kinds while the cluster does not
// have them, whether they are asked for or not.
const kindSearch = time.Minute

// gatewayAPI has HTTPRoutes and Gateways, which a cluster need not have. A watch on a
// kind that does not exist holds an operator up when it starts, so these two have a
// cache and a client of their own, made when the kinds are found: at the start, when an
// APIGateway asks for an HTTPRoute, or within a minute, since an HTTPRoute that another
// operator made may be there to be deleted.
type gatewayAPI struct {
	mgr ctrl.Manager
	// options are those of the cache.
	options cache.Options
	// fresh is asked before a write.
	fresh *apply.Freshness
	// repaired is told of drift that was undone.
	repaired func(owner client.Object, what string)
	// watch adds a source of events to the controller.
	watch func(source.Source) error

	// running is there from when the cache runs. A reconcile that has nothing to do with the
	// kinds must not wait for a search, so it is read without the mutex.
	running atomic.Pointer[apply.Applier]

	mutex  sync.Mutex  // guards the search
	cached cache.Cache // from when it was made
}

var _ manager.LeaderElectionRunnable = (*gatewayAPI)(nil)

// Start looks for the kinds until they are found.
func (g *gatewayAPI) Start(ctx context.Context) error {
	ticker := time.NewTicker(kindSearch)
	defer ticker.Stop()
	for {
		if found, err := g.find(); err != nil {
			logf.FromContext(ctx).Error(err, "Look for the Gateway API")
		} else if found {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// NeedLeaderElection is false: the standby has the kinds when it takes over.
func (g *gatewayAPI) NeedLeaderElection() bool { return false }

// find starts the cache when the cluster has the kinds, and tells whether it has.
func (g *gatewayAPI) find() (bool, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.running.Load() != nil {
		return true, nil
	}
	for _, kind := range []string{"HTTPRoute", "Gateway"} {
		_, err := g.mgr.GetRESTMapper().RESTMapping(schema.GroupKind{Group: gatewayv1.GroupName, Kind: kind}, gatewayv1.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("look for the kind %s: %w", kind, err)
		}
	}
	return true, g.start()
}

// start makes the cache and the client. The mutex is held. It may be called again after
// an error.
func (g *gatewayAPI) start() error {
	if g.cached == nil {
		if err := g.startCache(); err != nil {
			return err
		}
	}
	readYourWrites := true
	made, err := client.New(g.mgr.GetConfig(), client.Options{
		HTTPClient: g.mgr.GetHTTPClient(), Scheme: g.mgr.GetScheme(), Mapper: g.mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: g.cached, EnableReadYourWritesConsistency: &readYourWrites},
	})
	if err != nil {
		return fmt.Errorf("make the client of the Gateway API: %w", err)
	}
	owner := handler.EnqueueRequestForOwner(g.mgr.GetScheme(), g.mgr.GetRESTMapper(), &slipwayv1alpha1.APIGateway{}, handler.OnlyControllerOwner())
	for _, watched := range []source.Source{
		source.Kind[client.Object](g.cached, &gatewayv1.HTTPRoute{}, owner),
		source.Kind[client.Object](g.cached, &gatewayv1.Gateway{}, attached(g.mgr.GetClient())),
	} {
		if err := g.watch(watched); err != nil {
			return fmt.Errorf("watch the Gateway API: %w", err)
		}
	}
	g.running.Store(&apply.Applier{Client: made, Live: g.mgr.GetAPIReader(), FieldManager: FieldManager, Fresh: g.fresh, Repaired: g.repaired})
	return nil
}

func (g *gatewayAPI) startCache() error {
	options := g.options
	options.HTTPClient, options.Scheme, options.Mapper = g.mgr.GetHTTPClient(), g.mgr.GetScheme(), g.mgr.GetRESTMapper()
	cached, err := cache.New(g.mgr.GetConfig(), options)
	if err != nil {
		return fmt.Errorf("make the cache of the Gateway API: %w", err)
	}
	if err := g.mgr.Add(everywhere{cached}); err != nil {
		return fmt.Errorf("start the cache of the Gateway API: %w", err)
	}
	g.cached = cached
	return nil
}

// everywhere is a cache that runs on the standby too, as the manager's own does. A cache
// that waited for the lead would hold up the watches on it, which are warmed up before.
type everywhere struct{ cache.Cache }

// GetCache is how the manager knows a cache.
func (e everywhere) GetCache() cache.Cache { return e.Cache }

// load reads the HTTPRoutes, and the Gateway that they attach to.
func (g *gatewayAPI) load(ctx context.Context, s *scope) error {
	s.gatewayAPI = g.running.Load()
	if s.gatewayAPI == nil {
		// What asks for an HTTPRoute starts the cache, and what does not has none.
		return nil
	}
	if err := s.loadHTTPRoutes(ctx); err != nil {
		return err
	}
	key := parentKey(s.gateway)
	if key.Name == "" {
		return nil
	}
	if !g.watches(key.Namespace) {
		// The cache fails for a namespace that it does not watch. Its error is not NotFound.
		s.parentNotWatched = true
		return nil
	}
	if err := s.gatewayAPI.Client.Get(ctx, key, s.parent); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Gateway %q: %w", key, err)
	}
	return nil
}

// watches tells whether the cache has the objects of a namespace.
func (g *gatewayAPI) watches(namespace string) bool {
	namespaces := g.options.DefaultNamespaces
	_, named := namespaces[namespace]
	return named || len(namespaces) == 0
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
	wanted := desired.HTTPRoutes(s.gateway, s.hostnames())
	if len(wanted) == 0 {
		return g.deleteUnwanted(ctx, s, nil)
	}
	found, err := g.find()
	if err != nil {
		return err
	}
	if !found {
		return outcome.Blockedf(kindRecheck, slipwayv1alpha1.ReasonKindNotFound,
			"spec.expose.type is HTTPRoute, and the cluster does not have the kinds HTTPRoute and Gateway of %s/%s: install the Gateway API or choose another type",
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
			errs = append(errs, s.gatewayAPI.Delete(ctx, s.gateway, route))
		}
	}
	for _, route := range s.formerHTTPRoutes {
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
