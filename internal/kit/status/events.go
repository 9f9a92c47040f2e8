package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// action is what the events of a controller are about, in the terms of the events API.
const action = "Reconcile"

// Record emits an event for every transition that a user wants to hear of: becoming
// ready, and every abnormal condition that appears or changes its reason. The same
// trouble in several conditions gives one event.
func Record(recorder events.EventRecorder, object runtime.Object, before, after []metav1.Condition) {
	told := map[string]bool{}
	for _, c := range Transitions(before, after) {
		eventType, ok := worthTelling(c, before)
		if !ok || told[c.Message] {
			continue
		}
		told[c.Message] = true
		recorder.Eventf(object, nil, eventType, c.Reason, action, "%s", c.Message)
	}
}

// Repaired emits an event when fields of a child that somebody changed were restored.
func Repaired(recorder events.EventRecorder) func(owner client.Object, what string) {
	return func(owner client.Object, what string) {
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, slipwayv1alpha1.ReasonDriftRepaired, action, "%s", what)
	}
}

// Warn emits an event about something that has happened and that no condition tells.
func Warn(recorder events.EventRecorder) func(owner client.Object, reason, message string) {
	return func(owner client.Object, reason, message string) {
		recorder.Eventf(owner, nil, corev1.EventTypeWarning, reason, action, "%s", message)
	}
}

func worthTelling(c metav1.Condition, before []metav1.Condition) (eventType string, ok bool) {
	switch c.Type {
	case slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ConditionProgressing,
		slipwayv1alpha1.ConditionAccepted, slipwayv1alpha1.ConditionResolvedRefs, slipwayv1alpha1.ConditionProgrammed,
		slipwayv1alpha1.ConditionPaused:
		// What goes wrong with them is told by Degraded. A pause is what somebody asked for.
		return "", false
	case slipwayv1alpha1.ConditionReady:
		return corev1.EventTypeNormal, c.Status == metav1.ConditionTrue && !meta.IsStatusConditionTrue(before, c.Type)
	default:
		// Degraded, Stalled, and the abnormal-true conditions of single kinds.
		return corev1.EventTypeWarning, c.Status == metav1.ConditionTrue
	}
}
