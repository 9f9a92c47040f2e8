package gateway

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// ClassReconciler says of GatewayClasses of ours whether they are accepted, and what is supported.
type ClassReconciler struct {
	kit        *kit.Tools
	classes    *optional.Kinds
	parameters parameters
	// limited reports whether other operators may be there, for other namespaces, and have the same classes.
	limited bool
}

// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gatewayclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gatewayclasses/status,verbs=get;patch

// Reconcile writes the status of one class.
func (r *ClassReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	class := &gatewayv1.GatewayClass{}
	err := r.classes.Get(ctx, req.NamespacedName, class)
	switch {
	case apierrors.IsNotFound(err):
		return r.kit.Forget(ctx, req.NamespacedName)
	case err != nil:
		return r.kit.Abort(req.NamespacedName, fmt.Errorf("read the GatewayClass: %w", err))
	case class.Spec.ControllerName != Controller || !class.DeletionTimestamp.IsZero():
		return r.kit.Forget(ctx, req.NamespacedName)
	}
	given, err := r.parameters.ofClass(ctx, class)
	if err != nil {
		return r.kit.Abort(req.NamespacedName, err)
	}
	var recheck outcome.Recheck
	return r.kit.Conclude(ctx, req.NamespacedName, nil, &recheck, func() error {
		next := classStatus(class, given.problem, metav1.NewTime(r.kit.Clock.Now()))
		if r.limited && r.leaves(class, next) {
			return nil
		}
		if sameConditions(class.Status.Conditions, next.Conditions) && sameFeatures(class.Status.SupportedFeatures, next.SupportedFeatures) {
			return nil
		}
		in, err := r.classes.Client(class)
		if err != nil {
			return err
		}
		return applyStatus(ctx, in, class, next)
	})
}

// leaves reports whether an operator for some namespaces leaves the status of a class as it is. Several of them must not write it in
// turn. Whether parameters are valid is said by the one that can read them. Of a class without parameters all would say the same:
// the first one says it, and another one only adds features that it supports and the first one does not.
func (r *ClassReconciler) leaves(class *gatewayv1.GatewayClass, next gatewayv1.GatewayClassStatus) bool {
	if in, named := r.parameters.namespaceOf(class); named {
		return !r.parameters.watched(in)
	}
	reported := meta.FindStatusCondition(class.Status.Conditions, string(gatewayv1.GatewayClassConditionStatusAccepted))
	if reported == nil || reported.Status == metav1.ConditionUnknown || reported.ObservedGeneration != class.Generation {
		return false
	}
	adds := len(class.Status.SupportedFeatures) < len(next.SupportedFeatures)
	for _, feature := range class.Status.SupportedFeatures {
		adds = adds && slices.Contains(next.SupportedFeatures, feature)
	}
	return !adds
}

// classStatus is what there is to say of a class. problem is why its parameters cannot be used; empty: they can.
func classStatus(class *gatewayv1.GatewayClass, problem string, now metav1.Time) gatewayv1.GatewayClassStatus {
	const accepted = string(gatewayv1.GatewayClassConditionStatusAccepted)
	condition := status.True(accepted, string(gatewayv1.GatewayClassReasonAccepted), "Slipway serves the Gateways of this class")
	if problem != "" {
		condition = status.False(accepted, string(gatewayv1.GatewayClassReasonInvalidParameters), problem)
	}
	return gatewayv1.GatewayClassStatus{
		Conditions:        status.Merge(class.Status.Conditions, []metav1.Condition{condition}, class.Generation, now),
		SupportedFeatures: supportedFeatures(),
	}
}

func sameFeatures(a, b []gatewayv1.SupportedFeature) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// owned tells which Gateways are ours.
type owned struct {
	kinds *kinds
	// children reads Deployments from the cache.
	children client.Reader
}

// is reports whether a Gateway is ours: its class asks for Slipway. A Gateway whose class was deleted is ours as long as its pods
// are there: what serves is not taken away for that. What was retired does not serve.
func (o owned) is(ctx context.Context, gateway *gatewayv1.Gateway) (bool, error) {
	class := &gatewayv1.GatewayClass{}
	err := o.kinds.classes.Get(ctx, types.NamespacedName{Name: string(gateway.Spec.GatewayClassName)}, class)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("read the GatewayClass: %w", err)
	case err == nil:
		return class.Spec.ControllerName == Controller, nil
	}
	deployment := &appsv1.Deployment{}
	err = o.children.Get(ctx, types.NamespacedName{Namespace: gateway.Namespace, Name: desired.Name(gateway)}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read the Deployment: %w", err)
	}
	return err == nil && metav1.IsControlledBy(deployment, gateway) && !desired.Retired(deployment), nil
}
