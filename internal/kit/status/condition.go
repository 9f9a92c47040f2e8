package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/redact"
	"github.com/slipway-dev/slipway/internal/text"
)

// maxMessage bounds a message. The API allows 32,768 bytes; nobody reads that.
const maxMessage = 1024

// True returns a condition with status True.
func True(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// False returns a condition with status False.
func False(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Merge returns the next conditions in the given order, stamped with the generation.
// lastTransitionTime moves only where the status changed. A previous condition that
// next does not have is dropped: abnormal-true conditions exist only while true.
func Merge(previous, next []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	merged := make([]metav1.Condition, 0, len(next))
	for _, c := range next {
		c.ObservedGeneration = generation
		c.Message = text.Cut(redact.Clean(c.Message), maxMessage)
		c.LastTransitionTime = now
		if old := meta.FindStatusCondition(previous, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		merged = append(merged, c)
	}
	return merged
}

// Transitions returns the conditions of next whose status or reason differs from
// previous: what happened, as opposed to what is. A condition that was dropped is
// not among them.
func Transitions(previous, next []metav1.Condition) []metav1.Condition {
	var changed []metav1.Condition
	for _, c := range next {
		old := meta.FindStatusCondition(previous, c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason {
			changed = append(changed, c)
		}
	}
	return changed
}
