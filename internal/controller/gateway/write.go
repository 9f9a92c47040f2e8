package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

const (
	// settleTime is how long a status waits for pods to say that they serve what was just asked for. It takes them
	// milliseconds, and a status that calls them behind meanwhile would cost two writes for every change.
	settleTime = time.Second
	// countInterval is how often the status of a Gateway or a ListenerSet is written for nothing but numbers of routes and words.
	countInterval = time.Second
	// countOfSet is by how much that becomes rarer for each ListenerSet. So all those of a Gateway are written 100 times a second
	// for it at most, and there is time to write the statuses of routes.
	countOfSet = 10 * time.Millisecond
)

// settle returns how long to hold a status back that waits for pods to say something else. what identifies what they are to say.
func (r *Reconciler) settle(what string) time.Duration {
	since, ok := r.settling.Get(what)
	if !ok {
		since = r.kit.Clock.Now()
		r.settling.Add(what, since)
	}
	return settleTime - r.kit.Clock.Since(since.(time.Time))
}

// writeStatuses writes the status of the Gateway, and then of everything of it together: none of many waits for all of another kind.
func (r *Reconciler) writeStatuses(ctx context.Context, s *scope) error {
	if err := r.confirmSilence(ctx, s); err != nil {
		return err
	}
	err := r.writeGateway(ctx, s)
	sets, failed := r.setWrites(ctx, s)
	changes := slices.Concat(r.policyChanges(s), r.gatewayPolicyChanges(s), r.routeChanges(s))
	return errors.Join(err, failed, r.writeAll(append(sets, r.writesOf(ctx, changes)...)))
}

// writeGateway writes the status of the Gateway where it differs.
func (r *Reconciler) writeGateway(ctx context.Context, s *scope) error {
	next := s.status(r.kit.Clock.Now())
	if !r.due(s, s.gateway.UID, s.graph.Of(nil), s.gateway.Status, next) {
		return nil
	}
	// A status of a stale cache must not be written.
	if err := r.kit.Fresh.Confirm(ctx, append([]client.Object{s.gateway}, s.children()...)...); err != nil {
		return err
	}
	in, err := r.kinds.objects.Client(s.gateway)
	if err != nil {
		return err
	}
	if err := applyStatus(ctx, in, s.gateway, next); err != nil {
		return err
	}
	r.counted.Add(s.gateway.UID, r.kit.Clock.Now())
	if clean, dirty := cleaned(s.gateway.Status, next); dirty {
		return r.cleanStatus(ctx, in, s.gateway, clean)
	}
	return nil
}

// due reports whether the status of a Gateway or a ListenerSet is to be written now: it differs, no pod is about to say something
// else of its listeners, and numbers are not written too often.
func (r *Reconciler) due(s *scope, uid types.UID, listeners []*gatewayapi.Listener, is, next gatewayv1.GatewayStatus) bool {
	key := fmt.Sprintf("gateway/%s", uid)
	if !s.unsettled(listeners) {
		r.settling.Remove(key)
	} else if wait := r.settle(key); wait > 0 {
		s.recheck.After(wait)
		return false
	}
	if sameStatus(is, next) {
		return false
	}
	if onlyCounts(is, next) {
		last, ok := r.counted.Get(uid)
		if !ok {
			// The operator that led before may have counted what the cache does not show yet.
			last = r.kit.Clock.Now()
			r.counted.Add(uid, last)
		}
		if wait := s.countPause() - r.kit.Clock.Since(last.(time.Time)); wait > 0 {
			s.recheck.After(wait)
			return false
		}
	}
	return true
}

// countPause is how long numbers of routes wait after the last write.
func (s *scope) countPause() time.Duration {
	return countInterval + time.Duration(len(s.graph.Sets))*countOfSet
}

// cleanStatus takes away what an apply leaves.
func (r *Reconciler) cleanStatus(ctx context.Context, in client.Client, gateway *gatewayv1.Gateway, clean gatewayv1.GatewayStatus) error {
	before := gateway.DeepCopy()
	gateway.Status = clean
	err := in.Status().Patch(ctx, gateway, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
	return written(gateway, err)
}

// onlyCounts reports whether two statuses differ in nothing but numbers of routes and words.
func onlyCounts(is, next gatewayv1.GatewayStatus) bool {
	next = *next.DeepCopy()
	for i := range next.Listeners {
		for k := range is.Listeners {
			if is.Listeners[k].Name == next.Listeners[i].Name {
				next.Listeners[i].AttachedRoutes = is.Listeners[k].AttachedRoutes
				next.Listeners[i].Conditions = status.WithMessagesOf(is.Listeners[k].Conditions, next.Listeners[i].Conditions)
			}
		}
	}
	next.Conditions, next.AttachedListenerSets = status.WithMessagesOf(is.Conditions, next.Conditions), nil
	return sameStatus(is, next)
}

// applyStatus states a status, of the object as it was read: that of an earlier one must not be written. The answer is
// in the object. Nil states nothing any more: what only we have stated goes.
func applyStatus(ctx context.Context, in client.Client, object client.Object, next any) error {
	of, err := in.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	stated := map[string]any{
		"apiVersion": of.GroupVersion().String(), "kind": of.Kind,
		"metadata": map[string]string{
			"name": object.GetName(), "namespace": object.GetNamespace(), "uid": string(object.GetUID()), "resourceVersion": object.GetResourceVersion(),
		},
	}
	if next != nil {
		stated["status"] = next
	}
	body, err := json.Marshal(stated)
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	err = in.Status().Patch(ctx, object, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(FieldManager), client.ForceOwnership)
	return written(object, err)
}

// written gives the error of a write its policy. An object that has gone is none.
func written(object client.Object, err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return outcome.Classify(fmt.Sprintf("the status of %T %q", object, client.ObjectKeyFromObject(object)), err)
}

// routeChanges are the statuses of routes in which the entries of the Gateway and of its ListenerSets differ. A route that is about
// to be served by every pod waits for that, and no other one for it.
func (r *Reconciler) routeChanges(s *scope) []change {
	judged := map[types.UID]*gatewayapi.Route{}
	for _, route := range s.graph.Routes {
		judged[route.UID] = route
	}
	ours := ofGateway(client.ObjectKeyFromObject(s.gateway), s.input.ListenerSets)
	var changes []change
	for _, object := range s.routes {
		var all []parentStatus
		if route := judged[object.GetUID()]; route != nil {
			if wait := r.routeWait(s, route); wait > 0 {
				s.recheck.After(wait)
				continue
			}
			all = s.parentStatuses(route)
		}
		changes = r.appendChange(changes, object, ours, all)
	}
	return changes
}

// routeWait is how long to hold back the status of a route.
func (r *Reconciler) routeWait(s *scope, route *gatewayapi.Route) time.Duration {
	accepted := false
	for _, parent := range route.Parents {
		accepted = accepted || parent.Accepted()
	}
	if !accepted {
		return 0
	}
	key := fmt.Sprintf("route/%s/%s", s.gateway.UID, document.RouteDigest(route.UID, route.Generation))
	lack := s.routeLack(route)
	if lack == nil || !lack.passing {
		r.settling.Remove(key)
		return 0
	}
	return r.settle(key)
}

// release takes our entries for a Gateway that has gone, or is not ours, out of the statuses of routes and
// policies, and what we state of its ListenerSets.
func (r *Reconciler) release(ctx context.Context, gateway types.NamespacedName) error {
	if !r.kinds.running() || !r.kinds.objects.Watches(gateway.Namespace) {
		return nil
	}
	list, err := r.setsOf(ctx, gateway)
	errs, values := []error{err}, []string{gateway.String()}
	sets := make([]*gatewayv1.ListenerSet, len(list))
	var writes []func() error
	for i := range list {
		sets[i] = &list[i]
		values = append(values, ofSet(client.ObjectKeyFromObject(sets[i])))
		of, err := r.retract(ctx, sets[i])
		writes, errs = append(writes, of...), append(errs, err)
	}
	routes, ofRoutes := r.releaseRoutes(ctx, ofGateway(gateway, sets), values...)
	policies, ofPolicies := r.releasePolicies(ctx, gateway)
	gatewayPolicies, ofGatewayPolicies := r.releaseGatewayPolicies(ctx, gateway)
	writes = append(writes, r.writesOf(ctx, slices.Concat(routes, policies, gatewayPolicies))...)
	return errors.Join(append(errs, ofRoutes, ofPolicies, ofGatewayPolicies, r.writeAll(writes))...)
}

// releaseRoutes are the changes that take our entries for some parents out of the statuses of routes, one for each route. values find
// the routes in the index.
func (r *Reconciler) releaseRoutes(ctx context.Context, ours owns, values ...string) ([]change, error) {
	var errs []error
	var changes []change
	seen := map[types.UID]bool{}
	for _, value := range values {
		found, err := listRoutes(ctx, r.kinds.objects, client.MatchingFields{indexEntry: value}, client.UnsafeDisableDeepCopy)
		errs = append(errs, err)
		for _, route := range found { // with an error they are those that could be listed
			if !seen[route.GetUID()] {
				seen[route.GetUID()] = true
				changes = r.appendChange(changes, route, ours, nil)
			}
		}
	}
	return changes, errors.Join(errs...)
}
