package backup

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// copied is a run that completed with a copy of a claim.
func copied(source, claim string, at time.Time) slipwayv1alpha1.BackupRun {
	run := completed("run-of-"+claim, at)
	run.Status.Source = source
	run.Status.Volumes = []slipwayv1alpha1.BackupVolume{{Claim: claim, Verified: true, SourceTime: &metav1.Time{Time: at}}}
	return run
}

func TestACopyCountsForItsSourceAlone(t *testing.T) {
	dump := copied("statefulset/db", slipwayv1alpha1.DumpVolume, at(4, 2, 0))
	dump.Status.Volumes[0].Dump = "db.dump"
	dumped := func(b *slipwayv1alpha1.Backup) { b.Spec.Dump = &slipwayv1alpha1.BackupDump{Command: []string{"dump"}} }
	reported := func(source string) func(*slipwayv1alpha1.Backup) {
		return func(b *slipwayv1alpha1.Backup) {
			b.Status.LastBackupTime, b.Status.LastBackupSource = &metav1.Time{Time: at(4, 2, 0)}, source
		}
	}
	none := func(*slipwayv1alpha1.Backup) {}
	tests := map[string]struct {
		source string
		change func(*slipwayv1alpha1.Backup)
		runs   []slipwayv1alpha1.BackupRun
		want   bool
	}{
		"of the claim":                               {"shop-data", none, []slipwayv1alpha1.BackupRun{copied("pvc/shop-data", "shop-data", at(4, 2, 0))}, true},
		"the same in other words":                    {"pvc/shop-data", reported("pvc/shop-data"), nil, true},
		"of another claim":                           {"other", none, []slipwayv1alpha1.BackupRun{copied("pvc/shop-data", "shop-data", at(4, 2, 0))}, false},
		"of another claim, and the runs are gone":    {"other", reported("pvc/shop-data"), nil, false},
		"the claim, and the workload that has it":    {"statefulset/db", none, []slipwayv1alpha1.BackupRun{copied("pvc/data-db-0", "data-db-0", at(4, 2, 0))}, false},
		"an older operator, of the claim":            {"shop-data", reported(""), []slipwayv1alpha1.BackupRun{copied("", "shop-data", at(4, 2, 0))}, true},
		"an older operator, of another claim":        {"other", none, []slipwayv1alpha1.BackupRun{copied("", "shop-data", at(4, 2, 0))}, false},
		"an older operator, of a workload":           {"statefulset/db", none, []slipwayv1alpha1.BackupRun{copied("", "data-db-0", at(4, 2, 0))}, true},
		"a dump":                                     {"statefulset/db", dumped, []slipwayv1alpha1.BackupRun{dump}, true},
		"a dump, and volumes are asked for":          {"statefulset/db", none, []slipwayv1alpha1.BackupRun{dump}, false},
		"volumes, and a dump is asked for":           {"statefulset/db", dumped, []slipwayv1alpha1.BackupRun{copied("statefulset/db", "data-db-0", at(4, 2, 0))}, false},
		"a dump is asked for, and the runs are gone": {"statefulset/db", func(b *slipwayv1alpha1.Backup) { dumped(b); reported("statefulset/db")(b) }, nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			backup := nightly(func(b *slipwayv1alpha1.Backup) { b.Spec.Source = tc.source }, tc.change)
			s := &scope{backup: backup, source: sourceOf(&backup.Spec), runs: tc.runs}
			now := at(4, 9, 0)
			s.plan, s.promise = promised(backup, now, s.lastBackup())
			status := s.status(now)
			if got := status.LastBackupTime != nil; got != tc.want || got != (status.LastBackupSource != "") {
				t.Errorf("the newest copy is of %v, %q", status.LastBackupTime, status.LastBackupSource)
			}
			met := meta.FindStatusCondition(status.Conditions, slipwayv1alpha1.ConditionRPOMet)
			if (met.Status == metav1.ConditionTrue) != tc.want {
				t.Errorf("RPOMet is %+v", met)
			}
			if !tc.want && !strings.Contains(met.Message, "spec.source is "+sourceOf(&backup.Spec)) {
				t.Errorf("nobody is told why: %s", met.Message)
			}
		})
	}
}

// What is said about a copy is not said about another source.
func TestWhatIsSaidAboutACopyIsOfItsSource(t *testing.T) {
	said := []string{slipwayv1alpha1.ConditionLiveSource, slipwayv1alpha1.ConditionCrashConsistent}
	run := copied("pvc/shop-data", "shop-data", at(4, 2, 0))
	for _, kind := range said {
		run.Status.Conditions = append(run.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Said", Message: "words"})
	}
	reported := []metav1.Condition{{
		Type: slipwayv1alpha1.ConditionVerified, Status: metav1.ConditionTrue, Reason: slipwayv1alpha1.ReasonVerified, Message: "words",
	}}
	tests := map[string]struct {
		source string
		runs   []slipwayv1alpha1.BackupRun
		// verified is the reason of Verified, which is true where that is Verified. said reports whether the other conditions are there.
		verified string
		said     bool
	}{
		"the same source":                      {"shop-data", []slipwayv1alpha1.BackupRun{run}, slipwayv1alpha1.ReasonVerified, true},
		"another source":                       {"other", []slipwayv1alpha1.BackupRun{run}, slipwayv1alpha1.ReasonNoCopy, false},
		"the same source, the runs are gone":   {"shop-data", nil, slipwayv1alpha1.ReasonVerified, false},
		"another source, the runs are gone":    {"other", nil, slipwayv1alpha1.ReasonNoRun, false},
		"nobody can understand the new source": {"a/b/c", []slipwayv1alpha1.BackupRun{run}, slipwayv1alpha1.ReasonVerified, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			backup := nightly(func(b *slipwayv1alpha1.Backup) {
				b.Spec.Source = tc.source
				b.Status.LastBackupTime, b.Status.LastBackupSource = &metav1.Time{Time: at(4, 2, 0)}, "pvc/shop-data"
				b.Status.Conditions = reported
			})
			s := &scope{backup: backup, source: sourceOf(&backup.Spec), runs: tc.runs}
			now := at(4, 9, 0)
			s.plan, s.promise = promised(backup, now, s.lastBackup())
			conditions := s.status(now).Conditions
			verified := meta.FindStatusCondition(conditions, slipwayv1alpha1.ConditionVerified)
			if verified.Reason != tc.verified || (verified.Status == metav1.ConditionTrue) != (tc.verified == slipwayv1alpha1.ReasonVerified) {
				t.Errorf("Verified is %+v, want %s", verified, tc.verified)
			}
			for _, kind := range said {
				if got := meta.IsStatusConditionTrue(conditions, kind); got != tc.said {
					t.Errorf("%s is %v, want %v", kind, got, tc.said)
				}
			}
		})
	}
}

// Who breaks the spec breaks no promise that was given.
func TestThePromiseOutlivesAnInvalidSpec(t *testing.T) {
	invalid := func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = "0 2 * * * *" }
	was := func(schedule, zone string) func(*slipwayv1alpha1.Backup) {
		return func(b *slipwayv1alpha1.Backup) {
			b.Status.Promise = &slipwayv1alpha1.BackupPromise{Schedule: schedule, TimeZone: zone}
		}
	}
	tests := map[string]struct {
		change []func(*slipwayv1alpha1.Backup)
		now    time.Time
		status metav1.ConditionStatus
		reason string
	}{
		"valid, and new enough":               {nil, at(5, 1, 0), metav1.ConditionTrue, slipwayv1alpha1.ReasonWithinObjective},
		"invalid, and still new enough":       {[]func(*slipwayv1alpha1.Backup){invalid, was("0 2 * * *", "")}, at(5, 1, 0), metav1.ConditionTrue, slipwayv1alpha1.ReasonWithinObjective},
		"invalid, and too old by now":         {[]func(*slipwayv1alpha1.Backup){invalid, was("0 2 * * *", "")}, at(9, 1, 0), metav1.ConditionFalse, slipwayv1alpha1.ReasonCopyTooOld},
		"invalid by another field":            {[]func(*slipwayv1alpha1.Backup){func(b *slipwayv1alpha1.Backup) { b.Spec.Exclude = []string{"["} }}, at(9, 1, 0), metav1.ConditionFalse, slipwayv1alpha1.ReasonCopyTooOld},
		"a zone that there is not":            {[]func(*slipwayv1alpha1.Backup){func(b *slipwayv1alpha1.Backup) { b.Spec.TimeZone = "Moon/Crater" }, was("0 2 * * *", "Europe/Berlin")}, at(9, 1, 0), metav1.ConditionFalse, slipwayv1alpha1.ReasonCopyTooOld},
		"there never was one":                 {[]func(*slipwayv1alpha1.Backup){invalid}, at(4, 9, 0), metav1.ConditionFalse, slipwayv1alpha1.ReasonInvalid},
		"what was promised is not understood": {[]func(*slipwayv1alpha1.Backup){invalid, was("x", "")}, at(4, 9, 0), metav1.ConditionFalse, slipwayv1alpha1.ReasonInvalid},
		"no schedule any more":                {[]func(*slipwayv1alpha1.Backup){func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = "" }, was("0 2 * * *", "")}, at(9, 1, 0), metav1.ConditionTrue, slipwayv1alpha1.ReasonNoSchedule},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			backup := nightly(append(tc.change, func(b *slipwayv1alpha1.Backup) { b.Spec.Source, b.Spec.Destination = "shop-data", "s3://bucket" })...)
			s := &scope{backup: backup, source: "pvc/shop-data", runs: []slipwayv1alpha1.BackupRun{copied("pvc/shop-data", "shop-data", at(4, 2, 0))}}
			s.err = s.check(tc.now)
			status := s.status(tc.now)
			met := meta.FindStatusCondition(status.Conditions, slipwayv1alpha1.ConditionRPOMet)
			if met == nil || met.Status != tc.status || met.Reason != tc.reason {
				t.Errorf("RPOMet is %+v, want %s, %s", met, tc.status, tc.reason)
			}
			if tc.status == metav1.ConditionTrue && tc.reason == slipwayv1alpha1.ReasonWithinObjective && s.recheck.In() == 0 {
				t.Error("nobody looks again when the copy is too old")
			}
			// What is promised now is still known at the next look.
			if backup.Spec.Schedule != "" && tc.reason != slipwayv1alpha1.ReasonInvalid && status.Promise == nil {
				t.Error("the promise is forgotten")
			}
		})
	}
}

func TestAFailedMaintenanceIsToldWhereEverythingIsKept(t *testing.T) {
	backup := nightly()
	run := completed("shop-a", at(4, 2, 5))
	keepingAfter(backup, run)
	s := &scope{backup: backup, runs: []slipwayv1alpha1.BackupRun{run}, kept: backup.Status.Retention}
	if c := s.retention(); c.Status != metav1.ConditionTrue || c.Reason != slipwayv1alpha1.ReasonNoRetention {
		t.Errorf("RetentionApplied is %+v", c)
	}
	s.kept.Reason, s.kept.Message = slipwayv1alpha1.ReasonRetentionFailed, "Unreachable: nobody answers"
	if c := s.retention(); c.Status != metav1.ConditionFalse || c.Reason != slipwayv1alpha1.ReasonRetentionFailed {
		t.Errorf("RetentionApplied is %+v", c)
	}
}
