package gateway

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// targets says which targets of a GatewayPolicy no Gateway of ours has: they do not exist, or others serve them. Of the others the
// controller of Gateways speaks, in the entry of the Gateway.
type targets struct {
	kit *kit.Tools
	of  *Reconciler
}

// Reconcile looks at one GatewayPolicy.
func (t *targets) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r := t.of
	if !r.kinds.running() || !r.kinds.objects.Watches(req.Namespace) {
		return t.kit.Forget(ctx, req.NamespacedName)
	}
	policy := &slipwayv1alpha1.GatewayPolicy{}
	err := r.kinds.objects.Get(ctx, req.NamespacedName, policy)
	switch {
	case apierrors.IsNotFound(err):
		return t.kit.Forget(ctx, req.NamespacedName)
	case err != nil:
		return t.kit.Abort(req.NamespacedName, fmt.Errorf("read the GatewayPolicy: %w", err))
	}
	next, err := t.entries(ctx, policy)
	if err != nil {
		return t.kit.Abort(req.NamespacedName, err)
	}
	if len(next) == len(policy.Status.Ancestors) && (len(next) == 0 || reflect.DeepEqual(next, policy.Status.Ancestors)) {
		return t.kit.Forget(ctx, req.NamespacedName)
	}
	after := policy.DeepCopy()
	after.Status.Ancestors = next
	if err := r.writeChange(ctx, change{before: policy, after: after}); err != nil {
		return t.kit.Abort(req.NamespacedName, err)
	}
	return t.kit.Forget(ctx, req.NamespacedName)
}

// entries are those of the policy, with one for each target that no Gateway of ours has. The entry of a Gateway of ours stays: its
// controller keeps it.
func (t *targets) entries(ctx context.Context, policy *slipwayv1alpha1.GatewayPolicy) ([]slipwayv1alpha1.PolicyAncestorStatus, error) {
	lacking := map[gatewayapi.Target]string{}
	for _, target := range gatewayapi.TargetsOf(policy) {
		why, err := t.lacking(ctx, policy, target)
		if err != nil {
			return nil, err
		}
		if why != "" {
			lacking[target] = why
		}
	}
	var next []slipwayv1alpha1.PolicyAncestorStatus
	for _, entry := range policy.Status.Ancestors {
		target, mine := targetOf(&entry, policy.Namespace)
		why, lacks := lacking[target]
		switch {
		case mine && lacks:
			entry.Conditions = t.conditions(policy, entry.Conditions, why)
			delete(lacking, target)
		case mine && target.Kind != "Gateway":
			continue // a Gateway of ours has it, or the policy does not name it any more
		}
		next = append(next, entry)
	}
	for _, target := range gatewayapi.TargetsOf(policy) {
		if why, lacks := lacking[target]; lacks && len(next) < maxAncestors {
			next = append(next, slipwayv1alpha1.PolicyAncestorStatus{
				AncestorRef:    slipwayv1alpha1.PolicyAncestorReference{Group: gatewayv1.GroupName, Kind: target.Kind, Namespace: target.Name.Namespace, Name: target.Name.Name},
				ControllerName: string(Controller), Conditions: t.conditions(policy, nil, why),
			})
		}
	}
	return next, nil
}

// targetOf is the object that an entry of a policy is about, and whether the entry is ours.
func targetOf(entry *slipwayv1alpha1.PolicyAncestorStatus, namespace string) (gatewayapi.Target, bool) {
	ref := entry.AncestorRef
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	target := gatewayapi.Target{Kind: ref.Kind, Name: types.NamespacedName{Namespace: namespace, Name: ref.Name}}
	if target.Kind == "" {
		target.Kind = "Gateway"
	}
	return target, entry.ControllerName == string(Controller)
}

func (t *targets) conditions(policy *slipwayv1alpha1.GatewayPolicy, are []metav1.Condition, why string) []metav1.Condition {
	stated := []metav1.Condition{
		status.False(slipwayv1alpha1.ConditionPolicyAccepted, slipwayv1alpha1.ReasonPolicyTargetNotFound, why),
		status.False(slipwayv1alpha1.ConditionPolicyLive, ReasonNotAccepted, "the policy does nothing for this target: Accepted says why"),
	}
	return status.Merge(are, stated, policy.Generation, metav1.NewTime(t.of.kit.Clock.Now()))
}

// lacking is why no Gateway of ours has a target. Empty: one has it, or that is not known. What a cache does not show yet is asked
// for before it is reported.
func (t *targets) lacking(ctx context.Context, policy *slipwayv1alpha1.GatewayPolicy, target gatewayapi.Target) (string, error) {
	r := t.of
	why, err := t.look(ctx, r.kinds.objects, r.kinds.classes, target)
	if why == "" || err != nil {
		return "", err
	}
	for _, entry := range policy.Status.Ancestors {
		if about, mine := targetOf(&entry, policy.Namespace); mine && about == target {
			reported := meta.FindStatusCondition(entry.Conditions, slipwayv1alpha1.ConditionPolicyAccepted)
			if reported != nil && reported.Reason == slipwayv1alpha1.ReasonPolicyTargetNotFound && reported.Message == why {
				return why, nil
			}
		}
	}
	return t.look(ctx, r.kit.Live, r.kit.Live, target)
}

// look is why no Gateway of ours has a target, as some readers have it.
func (t *targets) look(ctx context.Context, objects, classes client.Reader, target gatewayapi.Target) (string, error) {
	place := fmt.Sprintf("spec.targetRefs: %s %q", target.Kind, target.Name.Name)
	var object client.Object = &gatewayv1.Gateway{}
	if target.Kind != "Gateway" {
		object = objectOf(target)
	}
	exists, err := found(ctx, objects, target.Name, object)
	switch {
	case err != nil:
		return "", err
	case !exists:
		return place + " does not exist in this namespace", nil
	}
	gateways, err := t.gatewaysOf(ctx, objects, object)
	if err != nil {
		return "", err
	}
	for _, name := range gateways {
		ours, err := t.mayBeOurs(ctx, objects, classes, name)
		if ours || err != nil {
			return "", err
		}
	}
	if target.Kind == "Gateway" {
		return place + " is not of a class of Slipway", nil
	}
	return place + " is attached to no Gateway of Slipway", nil
}

// gatewaysOf are the Gateways that an object is, or names.
func (t *targets) gatewaysOf(ctx context.Context, objects client.Reader, object client.Object) ([]types.NamespacedName, error) {
	if _, is := object.(*gatewayv1.Gateway); is {
		return []types.NamespacedName{client.ObjectKeyFromObject(object)}, nil
	}
	if set, is := object.(*gatewayv1.ListenerSet); is {
		name, names := gatewayapi.GatewayOfSet(set)
		if !names {
			return nil, nil
		}
		return []types.NamespacedName{name}, nil
	}
	var gateways []types.NamespacedName
	for _, ref := range parentRefs(object) {
		if name, is := gatewayapi.GatewayOf(ref, object.GetNamespace()); is {
			gateways = append(gateways, name)
		}
		name, is := gatewayapi.SetOf(ref, object.GetNamespace())
		if !is {
			continue
		}
		set := &gatewayv1.ListenerSet{}
		exists, err := found(ctx, objects, name, set)
		if err != nil {
			return nil, err
		}
		if of, names := gatewayapi.GatewayOfSet(set); exists && names {
			gateways = append(gateways, of)
		}
	}
	return gateways, nil
}

// mayBeOurs reports whether a Gateway is ours, or nobody knows: it is where this operator does not work. One without its class is ours as
// long as its pods are there.
func (t *targets) mayBeOurs(ctx context.Context, objects, classes client.Reader, name types.NamespacedName) (bool, error) {
	if !t.of.kinds.objects.Watches(name.Namespace) {
		return true, nil
	}
	gateway, class := &gatewayv1.Gateway{}, &gatewayv1.GatewayClass{}
	exists, err := found(ctx, objects, name, gateway)
	if !exists || err != nil {
		return false, err
	}
	exists, err = found(ctx, classes, types.NamespacedName{Name: string(gateway.Spec.GatewayClassName)}, class)
	if exists || err != nil {
		return class.Spec.ControllerName == Controller, err
	}
	return t.of.owned.is(ctx, gateway)
}

// found reads an object, if there is one. Where there is no such kind, there is none.
func found(ctx context.Context, from client.Reader, name types.NamespacedName, into client.Object) (bool, error) {
	err := from.Get(ctx, name, into)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return false, nil
	default:
		return false, outcome.Classify(fmt.Sprintf("%T %q", into, name), err)
	}
}

// setupTargets registers what says which targets nobody has.
func setupTargets(mgr ctrl.Manager, options Options, of *Reconciler) error {
	known := of.kinds.objects
	with := outcome.ControllerOptions(1, options.NewQueue)
	with.Reconciler = &targets{kit: kit.New(mgr, kit.Options{FieldManager: FieldManager, Clock: options.Clock}), of: of}
	built, err := controller.New("gatewaypolicy", mgr, with)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	beside := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		target := gatewayapi.Target{Kind: kindName(object), Name: client.ObjectKeyFromObject(object)}
		return of.policiesWhere(ctx, func(policy *slipwayv1alpha1.GatewayPolicy) bool {
			return slices.Contains(gatewayapi.TargetsOf(policy), target)
		}, client.InNamespace(object.GetNamespace()))
	})
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return of.policiesWhere(ctx, func(*slipwayv1alpha1.GatewayPolicy) bool { return true })
	})
	changed := predicate.GenerationChangedPredicate{}
	return errors.Join(
		known.Watch(built.Watch, &slipwayv1alpha1.GatewayPolicy{}, &handler.EnqueueRequestForObject{}),
		known.Watch(built.Watch, &gatewayv1.HTTPRoute{}, beside, changed),
		known.Watch(built.Watch, &gatewayv1.GRPCRoute{}, beside, changed),
		// Routes elsewhere may be attached to them.
		known.Watch(built.Watch, &gatewayv1.ListenerSet{}, all, changed),
		known.Watch(built.Watch, &gatewayv1.Gateway{}, all, changed),
		of.kinds.classes.Watch(built.Watch, &gatewayv1.GatewayClass{}, all, changed),
	)
}

// kindName is the kind of what may be a target, as policies name it.
func kindName(object client.Object) string {
	switch object.(type) {
	case *gatewayv1.Gateway:
		return "Gateway"
	case *gatewayv1.ListenerSet:
		return "ListenerSet"
	default:
		return string(kindOf(object))
	}
}

// policiesWhere are the GatewayPolicies of which something is true.
func (r *Reconciler) policiesWhere(ctx context.Context, is func(*slipwayv1alpha1.GatewayPolicy) bool, where ...client.ListOption) []reconcile.Request {
	list := &slipwayv1alpha1.GatewayPolicyList{}
	if err := r.kinds.objects.List(ctx, list, append(where, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)...); err != nil {
		if ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "An event is lost: GatewayPolicies are not reconciled")
		}
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if is(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
