package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/workload"
)

// Available returns the condition that says whether a pod serves. missing is why none does, if none does.
func Available(w workload.Workload, missing health.Trouble) metav1.Condition {
	if w.Deployment.Status.ReadyReplicas > 0 {
		return True(slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ReasonReplicasReady, "at least one replica serves")
	}
	if w.MinReplicas > 0 {
		missing.Reason = slipwayv1alpha1.ReasonReplicasNotReady
	}
	return False(slipwayv1alpha1.ConditionAvailable, missing.Reason, missing.Message)
}

// NotReady says why pods are missing. Where there is no Deployment, err is what keeps it from being made.
func NotReady(w workload.Workload, verdict workload.Verdict, err error) health.Trouble {
	if worst := outcome.Worst(err); worst != nil && !w.Exists() && w.MinReplicas > 0 {
		return *worst.Trouble()
	}
	return w.NotReady(verdict)
}

// ProgressingAfter is the condition Progressing where an error decides it: one that a user has to act on ends all progress,
// any other is tried again. Without an error it decides nothing.
func ProgressingAfter(worst *outcome.Error) (c metav1.Condition, decided bool) {
	switch {
	case worst == nil:
		return metav1.Condition{}, false
	case worst.Stalls():
		return False(slipwayv1alpha1.ConditionProgressing, worst.Reason, worst.Message), true
	default:
		return True(slipwayv1alpha1.ConditionProgressing, worst.Reason, worst.Message), true
	}
}

// Degraded tells what is wrong. Nil: nothing.
func Degraded(trouble *health.Trouble) metav1.Condition {
	if trouble == nil {
		return False(slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ReasonAsExpected, "nothing is wrong")
	}
	return True(slipwayv1alpha1.ConditionDegraded, trouble.Reason, trouble.Message)
}
