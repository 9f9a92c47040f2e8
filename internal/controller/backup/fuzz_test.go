package backup

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// Whatever runs there are, the time of the newest verified copy is that of a run that completed, and never goes back. A
// Backup is not Ready while its newest run has failed, or its copy is too old.
func FuzzStatus(f *testing.F) {
	generate.Seed(f, 60)
	now := time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, data []byte) {
		g := generate.From(data)
		backup := nightly(func(b *slipwayv1alpha1.Backup) {
			b.Spec.Schedule = generate.Pick(g, "0 2 * * *", "0 * * * *", "", "0 2 * * * *")
			if g.Maybe() {
				b.Status.Promise = &slipwayv1alpha1.BackupPromise{Schedule: "0 2 * * *"}
			}
			b.Spec.Suspend = g.Maybe()
			b.Spec.RetentionPolicy = generate.Pick(g, "", "30d")
			if g.Maybe() {
				b.Status.LastBackupTime = &metav1.Time{Time: now.Add(-time.Duration(g.Below(100)) * time.Hour)}
			}
			if g.Maybe() {
				b.Status.LastSlot = &metav1.Time{Time: now.Add(-time.Duration(g.Below(100)) * time.Hour)}
			}
		})
		s := &scope{backup: backup, lastSlot: backup.Status.LastSlot}
		for i := range g.Below(4) {
			run := slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
			run.Status.Phase = generate.Pick(g, "", slipwayv1alpha1.BackupPending, slipwayv1alpha1.BackupRunning, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.BackupFailed)
			for range g.Below(3) {
				at := metav1.NewTime(now.Add(-time.Duration(g.Below(100)) * time.Hour))
				run.Status.Volumes = append(run.Status.Volumes, slipwayv1alpha1.BackupVolume{Claim: "a", SourceTime: &at})
			}
			s.runs = append(s.runs, run)
		}
		s.err = generate.Pick[error](g, nil, nil, outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "bad"), outcome.StaleCache("x"))
		s.plan, s.promise = promised(backup, now, s.lastBackup())
		if plan, err := planned(backup, now, s.lastBackup()); err == nil {
			s.plan = plan
		} else {
			s.err = err
		}
		someDrill(g, s, now)
		status := s.status(now)

		last := status.LastBackupTime
		if before := backup.Status.LastBackupTime; before != nil && (last == nil || last.Before(before)) {
			t.Errorf("the newest copy was of %v, and is of %v", before, last)
		}
		if last != nil && !last.Equal(backup.Status.LastBackupTime) && !slices.ContainsFunc(s.runs, func(r slipwayv1alpha1.BackupRun) bool {
			return r.Status.Phase == slipwayv1alpha1.BackupCompleted
		}) {
			t.Errorf("the newest copy is of %v, and no run has completed", last)
		}
		ended := s.newest(slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.BackupFailed)
		ready := meta.IsStatusConditionTrue(status.Conditions, slipwayv1alpha1.ConditionReady)
		failed := ended != nil && ended.Status.Phase == slipwayv1alpha1.BackupFailed
		if ready && (failed || !meta.IsStatusConditionTrue(status.Conditions, slipwayv1alpha1.ConditionRPOMet) || outcome.Worst(s.err) != nil) {
			t.Errorf("it is Ready: %+v", status.Conditions)
		}
		if ready == (status.Summary.Reason != "") {
			t.Errorf("Ready is %v, and the reason %q", ready, status.Summary.Reason)
		}
		old := last == nil || last.Time.Before(now.AddDate(0, 0, -3)) // older than any of the schedules promises
		if old && backup.Spec.Schedule != "" && meta.IsStatusConditionTrue(status.Conditions, slipwayv1alpha1.ConditionRPOMet) {
			t.Errorf("the newest copy is of %v, and RPOMet is true: %q, %+v", last, backup.Spec.Schedule, backup.Status.Promise)
		}
		drill := meta.FindStatusCondition(status.Conditions, slipwayv1alpha1.ConditionDrillPassed)
		if (drill != nil) != (backup.Drill() != nil) {
			t.Errorf("DrillPassed is %+v, the spec %+v", drill, backup.Spec.Verify)
		}
		if drill != nil && drill.Status == metav1.ConditionFalse && ready {
			t.Errorf("it is Ready, and the drill failed: %+v", drill)
		}
		if drill != nil && drill.Status == metav1.ConditionTrue && s.drill.Phase == slipwayv1alpha1.BackupFailed {
			t.Errorf("the drill failed, and has passed: %+v", s.drill)
		}
		if verified := meta.IsStatusConditionTrue(status.Conditions, slipwayv1alpha1.ConditionVerified); verified && failed {
			t.Error("the newest run failed, and it is Verified")
		}
	})
}

// someDrill gives a scope a drill, or not.
func someDrill(g *generate.Source, s *scope, now time.Time) {
	if g.Maybe() {
		return
	}
	s.backup.Spec.Verify = &slipwayv1alpha1.BackupVerify{Drill: &slipwayv1alpha1.BackupDrill{Schedule: generate.Pick(g, "", "0 4 * * 0")}}
	s.drill = &slipwayv1alpha1.BackupDrillStatus{
		Phase:  generate.Pick(g, "", slipwayv1alpha1.BackupPending, slipwayv1alpha1.BackupRunning, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.BackupFailed),
		Reason: generate.Pick(g, slipwayv1alpha1.ReasonDrillPassed, slipwayv1alpha1.ReasonCorrupt),
	}
	ended := metav1.NewTime(now.Add(-time.Duration(g.Below(100)) * time.Hour))
	if g.Maybe() || s.drill.Phase == slipwayv1alpha1.BackupCompleted || s.drill.Phase == slipwayv1alpha1.BackupFailed {
		s.drill.LastTime = &ended
	}
	if g.Maybe() {
		s.backup.Status.Conditions = append(s.backup.Status.Conditions, metav1.Condition{
			Type: slipwayv1alpha1.ConditionDrillPassed, Status: generate.Pick(g, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown), Reason: "Before",
		})
	}
}
