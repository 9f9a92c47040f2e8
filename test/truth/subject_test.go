//go:build e2e

package truth

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

// said is what the status of an object says, of whatever kind it is.
type said struct {
	object     client.Object
	conditions []metav1.Condition
	// observed reports whether it speaks of the spec as it is, and fine whether all is well with that.
	observed, fine bool
}

// saidBy reads the status of an object. Of a Gateway it is that of its first listener, which has more to say, and of a route or a
// policy what stands for the first Gateway, or for the first target.
func saidBy(object client.Object) *said {
	s := &said{object: object}
	switch o := object.(type) {
	case truth.Object:
		s.conditions, s.observed = o.GetConditions(), truth.Observed(o)
		s.fine = truth.Ready(o) && !meta.IsStatusConditionTrue(s.conditions, slipwayv1alpha1.ConditionDegraded)
		return s
	case *gatewayv1.Gateway:
		if len(o.Status.Listeners) > 0 {
			s.conditions = o.Status.Listeners[0].Conditions
		}
		s.judge(string(gatewayv1.ListenerConditionAccepted), string(gatewayv1.ListenerConditionResolvedRefs), string(gatewayv1.ListenerConditionProgrammed))
	case *gatewayv1.HTTPRoute:
		if len(o.Status.Parents) > 0 {
			s.conditions = o.Status.Parents[0].Conditions
		}
		s.judge(string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs), gateway.ConditionLive)
	case *slipwayv1alpha1.GatewayPolicy:
		if len(o.Status.Ancestors) > 0 {
			s.conditions = o.Status.Ancestors[0].Conditions
		}
		s.judge(slipwayv1alpha1.ConditionPolicyAccepted, slipwayv1alpha1.ConditionPolicyLive)
	}
	return s
}

// judge compares with the generation, and wants conditions to be true.
func (s *said) judge(good ...string) {
	s.observed = len(s.conditions) > 0 && !slices.ContainsFunc(s.conditions, func(c metav1.Condition) bool {
		return c.ObservedGeneration != s.object.GetGeneration()
	})
	s.fine = s.observed && !slices.ContainsFunc(good, func(condition string) bool { return !meta.IsStatusConditionTrue(s.conditions, condition) })
}

func (s *said) condition(condition string) *metav1.Condition {
	return meta.FindStatusCondition(s.conditions, condition)
}

// check returns what is wrong with the status. Those of the Gateway API have a generation in each condition, so one that is on its
// way is not judged.
func (s *said) check() error {
	if object, ok := s.object.(truth.Object); ok {
		return truth.Check(object)
	}
	if !s.observed {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.object)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: fields}
	gvk, err := cluster.GroupVersionKindFor(s.object)
	if err != nil {
		return err
	}
	object.SetGroupVersionKind(gvk)
	return truth.CheckGatewayAPIAtRest(object)
}

// kindOf is the kind of an object.
func kindOf(object client.Object) string {
	gvk, err := cluster.GroupVersionKindFor(object)
	if err != nil {
		panic(err)
	}
	return gvk.Kind
}

// listOf is a list of objects of the same kind.
func listOf(object client.Object) client.ObjectList {
	gvk, err := cluster.GroupVersionKindFor(object)
	if err != nil {
		panic(err)
	}
	list, err := cluster.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		panic(fmt.Errorf("a list of %s: %w", gvk.Kind, err))
	}
	return list.(client.ObjectList)
}

func isBackup(object client.Object) bool {
	switch object.(type) {
	case *slipwayv1alpha1.Backup, *slipwayv1alpha1.BackupRun, *slipwayv1alpha1.Restore:
		return true
	default:
		return false
	}
}
