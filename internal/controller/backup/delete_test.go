package backup

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// The end of a Job is told by another clock than the operator's, which may be behind: no attempt comes later for that.
func TestAFailedDeletionIsTimedByOneClock(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		ended  time.Duration // before now, by the clock of the Job
		seen   time.Duration // before now, by that of the operator; negative: not yet
		reason string
		want   time.Duration // before now
	}{
		"seen at once":                        {0, -1, "", 0},
		"seen late, after a restart":          {time.Minute, -1, "", time.Minute},
		"the clocks agree":                    {20 * time.Second, 20 * time.Second, slipwayv1alpha1.ReasonRepositoryLeft, 20 * time.Second},
		"the operator is behind, and sees it": {-time.Hour, -1, "", 0},
		"the operator is behind, and waits":   {-time.Hour, 20 * time.Second, slipwayv1alpha1.ReasonRepositoryLeft, 20 * time.Second},
		"it was stalled for something else":   {-time.Hour, 20 * time.Second, slipwayv1alpha1.ReasonInvalid, 0},
		"its condition is ahead of the clock": {10 * time.Second, -time.Minute, slipwayv1alpha1.ReasonRepositoryLeft, 10 * time.Second},
		"the operator is ahead":               {time.Hour, 20 * time.Second, slipwayv1alpha1.ReasonRepositoryLeft, time.Hour},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobFailed, LastTransitionTime: metav1.NewTime(now.Add(-tc.ended))},
			}}}
			s := &scope{backup: &slipwayv1alpha1.Backup{}}
			if tc.reason != "" {
				s.backup.Status.Conditions = []metav1.Condition{{
					Type: slipwayv1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: tc.reason, LastTransitionTime: metav1.NewTime(now.Add(-tc.seen)),
				}}
			}
			if got := now.Sub(s.failedAt(job, now)); got != tc.want {
				t.Errorf("it failed %s ago, want %s", got, tc.want)
			}
		})
	}
}
