package transfer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// MaxMessage bounds what status says, in bytes: it may quote a server.
const MaxMessage = 1024

// At is a time as status has it, in whole seconds.
func At(t time.Time) *metav1.Time {
	truncated := metav1.NewTime(t.Truncate(time.Second))
	return &truncated
}

// ReasonTime is since when the reason of a status is what it is, from the reason before and the next one. Where the reason stays and
// nobody has noted since when, nobody knows.
func ReasonTime(before, next string, since *metav1.Time, now time.Time) *metav1.Time {
	if before == next {
		return since
	}
	return At(now)
}

// Conditions say what follows in the words that kubectl wait and kstatus know. ended is what Progressing says in the end.
func Conditions(next mover.Next, ended string) []metav1.Condition {
	ready, progressing := slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionProgressing
	switch next.Phase {
	case slipwayv1alpha1.BackupCompleted:
		return []metav1.Condition{status.True(ready, next.Reason, next.Message), status.False(progressing, next.Reason, ended)}
	case slipwayv1alpha1.BackupFailed:
		return []metav1.Condition{
			status.False(ready, next.Reason, next.Message), status.False(progressing, next.Reason, ended),
			status.True(slipwayv1alpha1.ConditionStalled, next.Reason, next.Message),
		}
	default:
		return []metav1.Condition{status.False(ready, next.Reason, next.Message), status.True(progressing, next.Reason, next.Message)}
	}
}
