package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/kit/status"
)

func TestWordsAreTakenOverWhereTheReasonIsTheSame(t *testing.T) {
	conditions := []metav1.Condition{
		status.False("Ready", "RolloutInProgress", "1 of 3"),
		status.True("Degraded", "CrashLoopBackOff", "exit code 3"),
		status.True("Stalled", "Invalid", "no"),
	}
	others := []metav1.Condition{
		status.False("Ready", "RolloutInProgress", "2 of 3"),
		status.True("Degraded", "ImagePullFailed", "not found"),
	}
	want := []metav1.Condition{others[0], conditions[1], conditions[2]}
	if diff := cmp.Diff(want, status.WithMessagesOf(others, conditions)); diff != "" {
		t.Error(diff)
	}
	if conditions[0].Message != "1 of 3" {
		t.Error("the conditions given have changed")
	}
}
