package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// setsOf are the ListenerSets that name a Gateway. They are shared with the cache.
func (r *Reconciler) setsOf(ctx context.Context, gateway types.NamespacedName) ([]gatewayv1.ListenerSet, error) {
	list := &gatewayv1.ListenerSetList{}
	if err := r.kinds.objects.List(ctx, list, client.MatchingFields{indexParent: gateway.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ListenerSets: %w", err)
	}
	return list.Items, nil
}

// loadSets reads the ListenerSets that name the Gateway, and the labels of their namespaces.
func (r *Reconciler) loadSets(ctx context.Context, s *scope) error {
	s.countsSets = r.kinds.objects.Has(&gatewayv1.ListenerSet{})
	list, err := r.setsOf(ctx, client.ObjectKeyFromObject(s.gateway))
	if err != nil {
		return err
	}
	for i := range list {
		set := &list[i]
		if err := r.loadNamespace(ctx, s, set.Namespace); err != nil {
			return err
		}
		s.input.ListenerSets = append(s.input.ListenerSets, set)
	}
	return nil
}

// asGatewayStatus brings the status of a set into the form that those of Gateways have: its parts are the same.
func asGatewayStatus(set *gatewayv1.ListenerSet) gatewayv1.GatewayStatus {
	of := gatewayv1.GatewayStatus{Conditions: set.Status.Conditions}
	for _, l := range set.Status.Listeners {
		of.Listeners = append(of.Listeners, gatewayv1.ListenerStatus(l))
	}
	return of
}

// asSetStatus brings it back.
func asSetStatus(of gatewayv1.GatewayStatus) gatewayv1.ListenerSetStatus {
	set := gatewayv1.ListenerSetStatus{Conditions: of.Conditions}
	for _, l := range of.Listeners {
		set.Listeners = append(set.Listeners, gatewayv1.ListenerEntryStatus(l))
	}
	return set
}

// setStatus computes what we have to say of a set, in the form of a Gateway's status.
func (s *scope) setStatus(object *gatewayv1.ListenerSet, set *gatewayapi.Set, now time.Time) gatewayv1.GatewayStatus {
	at, is := metav1.NewTime(now), asGatewayStatus(object)
	next := gatewayv1.GatewayStatus{
		Conditions: status.Merge(is.Conditions, []metav1.Condition{set.Accepted, s.setProgrammed(set)}, object.Generation, at),
	}
	for _, l := range s.graph.Of(set) {
		conditions := append(slices.Clone(l.Conditions), s.listenerProgrammed(l))
		next.Listeners = append(next.Listeners, gatewayv1.ListenerStatus{
			Name: l.Name, SupportedKinds: l.Kinds, AttachedRoutes: l.Attached,
			Conditions: status.Merge(conditionsOfListener(is.Listeners, l.Name), conditions, object.Generation, at),
		})
	}
	return next
}

// setProgrammed is the summary of a set: are its listeners that are valid served, where clients find them?
func (s *scope) setProgrammed(set *gatewayapi.Set) metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return status.False(string(gatewayv1.ListenerSetConditionProgrammed), reason, message)
	}
	const parent = "ParentNotProgrammed"
	if set.Accepted.Status != metav1.ConditionTrue {
		reason := set.Accepted.Reason
		if reason == string(gatewayv1.ListenerSetReasonParentNotAccepted) {
			reason = parent
		}
		return no(reason, set.Accepted.Message)
	}
	if reason, message := s.unreachable(); reason != "" {
		return no(parent, message)
	}
	if lack := s.firstLack(s.graph.Of(set)); lack != nil {
		if lack.reason == ReasonNoReplica {
			return no(parent, lack.message)
		}
		return no(string(gatewayv1.ListenerSetReasonPending), lack.message)
	}
	return status.True(string(gatewayv1.ListenerSetConditionProgrammed), string(gatewayv1.ListenerSetReasonProgrammed), "every pod that is ready serves every listener that can be served")
}

// setWrites are the writes of the statuses of ListenerSets that differ.
func (r *Reconciler) setWrites(ctx context.Context, s *scope) ([]func() error, error) {
	objects := map[types.UID]*gatewayv1.ListenerSet{}
	for _, object := range s.input.ListenerSets {
		objects[object.UID] = object
	}
	var writes []func() error
	for _, set := range s.graph.Sets {
		object := objects[set.UID]
		next := s.setStatus(object, set, r.kit.Clock.Now())
		if r.due(s, object.UID, s.graph.Of(set), asGatewayStatus(object), next) {
			writes = append(writes, func() error { return r.writeSet(ctx, object, next) })
		}
	}
	if len(writes) == 0 {
		return nil, nil
	}
	// What a stale cache shows of the Gateway and its children must not be reported.
	if err := r.kit.Fresh.Confirm(ctx, append([]client.Object{s.gateway}, s.children()...)...); err != nil {
		return nil, err
	}
	return writes, nil
}

func (r *Reconciler) writeSet(ctx context.Context, object *gatewayv1.ListenerSet, next gatewayv1.GatewayStatus) error {
	in, err := r.kinds.objects.Client(object)
	if err != nil {
		return err
	}
	object = object.DeepCopy() // the answer is written into it
	if err := applyStatus(ctx, in, object, asSetStatus(next)); err != nil {
		return err
	}
	r.counted.Add(object.UID, r.kit.Clock.Now())
	clean, dirty := cleaned(asGatewayStatus(object), next)
	if !dirty {
		return nil
	}
	before := object.DeepCopy()
	object.Status = asSetStatus(clean)
	err = in.Status().Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
	return written(object, err)
}

// releaseSet are the writes that take our entries for a ListenerSet out of the statuses of routes, and what we state out of its own.
// object is nil if the set has gone.
func (r *Reconciler) releaseSet(ctx context.Context, name types.NamespacedName, object *gatewayv1.ListenerSet) ([]func() error, error) {
	changes, err := r.releaseRoutes(ctx, func(ref gatewayv1.ParentReference, namespace string) bool {
		of, is := gatewayapi.SetOf(ref, namespace)
		return is && of == name
	}, ofSet(name))
	writes := r.writesOf(ctx, changes)
	if object == nil {
		return writes, err
	}
	of, failed := r.retract(ctx, object)
	return append(writes, of...), errors.Join(err, failed)
}

// retract returns the write that takes what we state of a ListenerSet out of its status. What others state there stays. There is none
// if nothing is ours.
func (r *Reconciler) retract(ctx context.Context, set *gatewayv1.ListenerSet) ([]func() error, error) {
	if !statedByUs(set) {
		return nil, nil
	}
	in, err := r.kinds.objects.Client(set)
	if err != nil {
		return nil, err
	}
	return []func() error{func() error { return applyStatus(ctx, in, set.DeepCopy(), nil) }}, nil
}

// statedByUs reports whether something in the status of a set is ours.
func statedByUs(set *gatewayv1.ListenerSet) bool {
	return slices.ContainsFunc(set.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == FieldManager && entry.Subresource == "status" && entry.Operation == metav1.ManagedFieldsOperationApply
	})
}
