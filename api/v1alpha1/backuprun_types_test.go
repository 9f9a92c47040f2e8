package v1alpha1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The operator writes when a run began, and the API server when it was made. Their clocks may differ.
func TestWhoseARunIsThatAnOlderOperatorBegan(t *testing.T) {
	backup := &Backup{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", Namespace: "shop", UID: "new", CreationTimestamp: metav1.NewTime(time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)),
	}}
	tests := map[string]struct {
		made, began time.Duration
		want        bool
	}{
		"made and begun afterwards":                        {time.Minute, time.Minute, true},
		"applied together":                                 {0, 0, true},
		"applied together, the operator's clock is behind": {0, -5 * time.Second, true},
		"made before, and begun afterwards":                {-time.Minute, time.Second, true},
		"of the Backup that was deleted":                   {-time.Hour, -time.Hour, false},
		"of the Backup that was deleted just now":          {-2 * time.Second, -time.Second, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			began := metav1.NewTime(backup.CreationTimestamp.Add(tc.began))
			run := &BackupRun{
				ObjectMeta: metav1.ObjectMeta{Name: "now", Namespace: "shop", CreationTimestamp: metav1.NewTime(backup.CreationTimestamp.Add(tc.made))},
				Spec:       BackupRunSpec{Backup: "shop"},
				Status:     BackupRunStatus{StartTime: &began},
			}
			if got := run.IsOf(backup); got != tc.want {
				t.Errorf("it is of the Backup: %v, want %v", got, tc.want)
			}
		})
	}
}
