package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Terminating are the conditions that every kind has, of an object that is being deleted
// and is still there: its children go first, or somebody's finalizer holds it. What was
// wrong with it before matters no more. serves reports whether a replica does.
func Terminating(kind string, object metav1.Object, serves bool) []metav1.Condition {
	message := fmt.Sprintf("%s %q is being deleted", kind, object.GetName())
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		message += " and goes when nobody holds it any more (metadata.finalizers): " + strings.Join(finalizers, ", ")
	}
	available := False(slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ReasonTerminating, message)
	if serves {
		available = True(slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ReasonReplicasReady, "at least one replica serves")
	}
	return []metav1.Condition{
		False(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonTerminating, message),
		available,
		True(slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ReasonTerminating, message),
		False(slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ReasonAsExpected, "nothing is wrong"),
	}
}
