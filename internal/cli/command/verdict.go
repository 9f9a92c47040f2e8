package command

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
)

// Verdict tells from a WebApp's status whether it is ready for its spec, still rolling out,
// or failed. generation is the lowest generation that the status must have observed. So a
// stale copy of the object is not taken as current.
func Verdict(app *slipwayv1alpha1.WebApp, generation int64) health.Verdict {
	return VerdictOf(app, WebAppRef(app.Name), app.Status.ObservedGeneration, generation)
}

// Declared is an object of one of Slipway's kinds.
type Declared interface {
	metav1.Object
	GetConditions() []metav1.Condition
}

// VerdictOf is Verdict for an object of any kind. name is its display name, observed the
// generation that its status has observed.
func VerdictOf(app Declared, name string, observed, generation int64) health.Verdict {
	if app.GetDeletionTimestamp() != nil {
		return health.Verdict{State: health.Terminating, Reason: slipwayv1alpha1.ReasonTerminating, Message: name + " is being deleted"}
	}
	if app.GetGeneration() < generation || observed < app.GetGeneration() {
		return health.Verdict{
			State: health.Progressing, Reason: health.ReasonNotObserved,
			Message: fmt.Sprintf("the operator has not looked at generation %d yet", max(app.GetGeneration(), generation)),
		}
	}
	if c := TrueCondition(app, slipwayv1alpha1.ConditionStalled); c != nil {
		return health.Verdict{State: health.Failed, Reason: c.Reason, Message: c.Message, Terminal: true}
	}
	if c := TrueCondition(app, slipwayv1alpha1.ConditionRolledBack); c != nil {
		return health.Verdict{State: health.Failed, Reason: slipwayv1alpha1.ReasonRolledBack, Message: c.Message, Terminal: true}
	}
	ready := meta.FindStatusCondition(app.GetConditions(), slipwayv1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return health.Verdict{
			State: health.Progressing, Reason: health.ReasonNotObserved, Message: "the operator has not said anything yet",
		}
	case ready.Status == metav1.ConditionTrue:
		return health.Verdict{State: health.Healthy, Reason: ready.Reason, Message: ready.Message}
	case ready.Reason == slipwayv1alpha1.ReasonPaused:
		// Only a user can repair it.
		return health.Verdict{State: health.Failed, Reason: ready.Reason, Message: ready.Message, Terminal: true}
	case TrueCondition(app, slipwayv1alpha1.ConditionDegraded) != nil:
		return health.Verdict{State: health.Failed, Reason: ready.Reason, Message: ready.Message}
	default:
		return health.Verdict{State: health.Progressing, Reason: ready.Reason, Message: ready.Message}
	}
}

// TrueCondition returns the condition if its status is True, and nil otherwise.
func TrueCondition(app Declared, conditionType string) *metav1.Condition {
	if c := meta.FindStatusCondition(app.GetConditions(), conditionType); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// Replicas formats ready/desired, as kubectl get shows it.
func Replicas(app *slipwayv1alpha1.WebApp) string {
	if app.Status.Summary.Replicas != "" {
		return app.Status.Summary.Replicas
	}
	return fmt.Sprintf("%d/%d", app.Status.ReadyReplicas, desired.MinReplicas(app))
}

// Because joins a reason and a message. If the message repeats the reason, the reason is
// printed once.
func Because(reason, message string) string {
	reason, message = Printable(reason), Printable(message)
	switch {
	case message == "" || reason == "":
		return reason + message
	case strings.HasPrefix(message, reason):
		return message
	default:
		return reason + ": " + message
	}
}
