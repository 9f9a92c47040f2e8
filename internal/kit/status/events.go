package status

import (
	"slices"

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

// News are the conditions of a kind that are worth an event. Of all others somebody hears in another way: what goes wrong
// with them is reported by Degraded, or they are what somebody asked for.
type News struct {
	// Good are worth an event when they become true.
	Good []string
	// Bad are worth a warning when they become true, or get another reason.
	Bad []string
}

// Record emits an event for every transition that a user wants to hear of. The same trouble in several conditions gives one
// event.
func Record(recorder events.EventRecorder, news News, object runtime.Object, before, after []metav1.Condition) {
	reported := map[string]bool{}
	for _, c := range Transitions(before, after) {
		eventType, ok := news.worthReporting(c, before)
		if !ok || reported[c.Message] {
			continue
		}
		reported[c.Message] = true
		recorder.Eventf(object, nil, eventType, c.Reason, action, "%s", c.Message)
	}
}

// Repaired emits an event when fields of a child that somebody changed were restored.
func Repaired(recorder events.EventRecorder) func(owner client.Object, what string) {
	return func(owner client.Object, what string) {
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, slipwayv1alpha1.ReasonDriftRepaired, action, "%s", what)
	}
}

// Altered emits an event when a child that is only created was changed on its way.
func Altered(recorder events.EventRecorder) func(owner client.Object, what string) {
	return func(owner client.Object, what string) {
		recorder.Eventf(owner, nil, corev1.EventTypeWarning, slipwayv1alpha1.ReasonAltered, action, "%s", what)
	}
}

// Warn emits an event about something that has happened and that no condition tells.
func Warn(recorder events.EventRecorder) func(owner client.Object, reason, message string) {
	return func(owner client.Object, reason, message string) {
		recorder.Eventf(owner, nil, corev1.EventTypeWarning, reason, action, "%s", message)
	}
}

func (n News) worthReporting(c metav1.Condition, before []metav1.Condition) (eventType string, ok bool) {
	switch {
	case c.Status != metav1.ConditionTrue:
		return "", false
	case slices.Contains(n.Good, c.Type):
		return corev1.EventTypeNormal, !meta.IsStatusConditionTrue(before, c.Type)
	default:
		return corev1.EventTypeWarning, slices.Contains(n.Bad, c.Type)
	}
}
