package cli

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/webapp/desired"
)

// verdict says whether a WebApp is ready for its spec, still on its way, or has
// failed, by its own status. generation is the least that the status must speak of,
// so that an older copy of the object is not taken for the present.
func verdict(app *slipwayv1alpha1.WebApp, generation int64) health.Verdict {
	if !app.DeletionTimestamp.IsZero() {
		return health.Verdict{State: health.Terminating, Reason: slipwayv1alpha1.ReasonTerminating, Message: ref(app.Name) + " is being deleted"}
	}
	if app.Generation < generation || app.Status.ObservedGeneration < app.Generation {
		return health.Verdict{
			State: health.Progressing, Reason: health.ReasonNotObserved,
			Message: fmt.Sprintf("the operator has not looked at generation %d yet", max(app.Generation, generation)),
		}
	}
	if c := trueCondition(app, slipwayv1alpha1.ConditionStalled); c != nil {
		return health.Verdict{State: health.Failed, Reason: c.Reason, Message: c.Message, Terminal: true}
	}
	if c := trueCondition(app, slipwayv1alpha1.ConditionRolledBack); c != nil {
		return health.Verdict{State: health.Failed, Reason: slipwayv1alpha1.ReasonRolledBack, Message: c.Message, Terminal: true}
	}
	ready := meta.FindStatusCondition(app.Status.Conditions, slipwayv1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return health.Verdict{State: health.Progressing, Reason: health.ReasonNotObserved, Message: "the operator has not said anything yet"}
	case ready.Status == metav1.ConditionTrue:
		return health.Verdict{State: health.Healthy, Reason: ready.Reason, Message: ready.Message}
	case ready.Reason == slipwayv1alpha1.ReasonPaused:
		// Nothing will happen until a user acts.
		return health.Verdict{State: health.Failed, Reason: ready.Reason, Message: ready.Message, Terminal: true}
	case trueCondition(app, slipwayv1alpha1.ConditionDegraded) != nil:
		return health.Verdict{State: health.Failed, Reason: ready.Reason, Message: ready.Message}
	default:
		return health.Verdict{State: health.Progressing, Reason: ready.Reason, Message: ready.Message}
	}
}

func trueCondition(app *slipwayv1alpha1.WebApp, conditionType string) *metav1.Condition {
	if c := meta.FindStatusCondition(app.Status.Conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// replicas is ready/wanted, as kubectl get shows it.
func replicas(app *slipwayv1alpha1.WebApp) string {
	if app.Status.Summary.Replicas != "" {
		return app.Status.Summary.Replicas
	}
	return fmt.Sprintf("%d/%d", app.Status.ReadyReplicas, desired.MinReplicas(app))
}

// because joins a reason and a message; a message that repeats the reason says it once.
func because(reason, message string) string {
	message = printable(message)
	switch {
	case message == "" || reason == "":
		return reason + message
	case strings.HasPrefix(message, reason):
		return message
	default:
		return reason + ": " + message
	}
}
