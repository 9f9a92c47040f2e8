package backup

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
)

// completed is a run that completed then.
func completed(name string, then time.Time) slipwayv1alpha1.BackupRun {
	end := metav1.NewTime(then)
	return slipwayv1alpha1.BackupRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(then.Add(-time.Minute))},
		Status:     slipwayv1alpha1.BackupRunStatus{Phase: slipwayv1alpha1.BackupCompleted, CompletionTime: &end},
	}
}

// keepingAfter is the retention that was done after a run.
func keepingAfter(b *slipwayv1alpha1.Backup, run slipwayv1alpha1.BackupRun) {
	b.Status.Retention = &slipwayv1alpha1.BackupRetentionStatus{
		Run: run.Name, RunTime: &run.CreationTimestamp, Rules: desired.Rules(b),
	}
}

// After a restart the cache of the operator may be older than the status that it wrote itself.
func TestRetentionIsNotRepeatedForAnOlderRun(t *testing.T) {
	older, newer := completed("shop-a", at(3, 2, 5)), completed("shop-b", at(4, 2, 5))
	twin, ahead := completed("shop-c", at(4, 2, 5)), older
	ahead.Status.CompletionTime = &metav1.Time{Time: at(30, 0, 0)} // the operator's clock was wrong for a while
	weekly := func(b *slipwayv1alpha1.Backup) { b.Spec.RetentionPolicy = "1w" }
	tests := map[string]struct {
		kept   slipwayv1alpha1.BackupRun
		then   func(*slipwayv1alpha1.Backup)
		cached []slipwayv1alpha1.BackupRun
		want   bool
	}{
		"nothing ran":                   {kept: newer},
		"the newest run":                {kept: newer, cached: []slipwayv1alpha1.BackupRun{newer, older}, want: true},
		"a run that the cache has not":  {kept: newer, cached: []slipwayv1alpha1.BackupRun{older}, want: true},
		"a run of the same second":      {kept: twin, cached: []slipwayv1alpha1.BackupRun{newer}, want: true},
		"whose clock was ahead":         {kept: ahead, cached: []slipwayv1alpha1.BackupRun{newer, ahead}},
		"an older run":                  {kept: older, cached: []slipwayv1alpha1.BackupRun{newer, older}},
		"an older run that was deleted": {kept: older, cached: []slipwayv1alpha1.BackupRun{newer}},
		"the newest run by other rules": {kept: newer, then: weekly, cached: []slipwayv1alpha1.BackupRun{newer, older}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scope{backup: nightly(), runs: tt.cached}
			keepingAfter(s.backup, tt.kept)
			if tt.then != nil {
				tt.then(s.backup)
			}
			if got := s.hasKept(); got != tt.want {
				t.Errorf("hasKept = %t, want %t", got, tt.want)
			}
		})
	}
}

// A Job that is deleted before its result is known does its work twice.
func TestAJobOfRetentionIsObsoleteOnlyWhenNobodyWaitsForIt(t *testing.T) {
	older, newer := completed("shop-a", at(3, 2, 5)), completed("shop-b", at(4, 2, 5))
	tests := map[string]struct {
		run    slipwayv1alpha1.BackupRun
		rules  string
		made   time.Time
		kept   bool
		cached []slipwayv1alpha1.BackupRun
		want   bool
	}{
		"of the newest run":                       {run: newer, cached: []slipwayv1alpha1.BackupRun{newer, older}},
		"of a run that the cache has not":         {run: newer, cached: []slipwayv1alpha1.BackupRun{older}},
		"of a run that is alone and not cached":   {run: newer},
		"of the newest run, told":                 {run: newer, kept: true, cached: []slipwayv1alpha1.BackupRun{newer, older}, want: true},
		"of a run that the cache has not, told":   {run: newer, kept: true, cached: []slipwayv1alpha1.BackupRun{older}, want: true},
		"of an older run":                         {run: older, cached: []slipwayv1alpha1.BackupRun{newer, older}, want: true},
		"of an older run, made after it":          {run: older, made: at(4, 2, 6), cached: []slipwayv1alpha1.BackupRun{newer, older}, want: true},
		"of an older run that was deleted":        {run: older, cached: []slipwayv1alpha1.BackupRun{newer}, want: true},
		"of the newest run, by rules of the past": {run: newer, rules: "another", cached: []slipwayv1alpha1.BackupRun{newer}, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scope{backup: nightly(), runs: tt.cached}
			if tt.kept {
				keepingAfter(s.backup, tt.run)
			}
			if tt.made.IsZero() {
				tt.made = tt.run.Status.CompletionTime.Add(time.Second)
			}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Name:              desired.KeepName(s.backup, tt.run.Name),
				Labels:            map[string]string{slipwayv1alpha1.LabelRetentionRules: tt.rules},
				CreationTimestamp: metav1.NewTime(tt.made),
			}}
			if got := s.obsolete(job); got != tt.want {
				t.Errorf("obsolete = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestFreeingSpaceDoesNotHoldUpTheNextRun(t *testing.T) {
	now := at(10, 2, 0)
	for name, tc := range map[string]struct {
		next  time.Time
		last  time.Time
		takes int64
		want  bool
	}{
		"no run is planned":                        {last: at(9, 2, 0), want: true},
		"the next run is tomorrow":                 {next: at(11, 2, 0), last: at(9, 2, 0), want: true},
		"the next run is soon":                     {next: at(10, 2, 9), last: at(9, 2, 0), want: false},
		"just time enough":                         {next: at(10, 2, 10), last: at(9, 2, 0), want: true},
		"it took an hour, and there is one":        {next: at(10, 3, 0), last: at(9, 2, 0), takes: 3600, want: false},
		"it took an hour, and there are two":       {next: at(10, 4, 0), last: at(9, 2, 0), takes: 3600, want: true},
		"there is never time, for three days":      {next: at(10, 2, 1), last: at(7, 2, 0), want: true},
		"it was never done, and is nine days old":  {next: at(10, 2, 1), want: true},
		"there is never time, for almost that":     {next: at(10, 2, 1), last: at(7, 2, 1), want: false},
		"a clock that was ahead brings no overrun": {next: at(10, 2, 1), last: at(20, 2, 1), want: false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{backup: nightly(), plan: plan{next: tc.next}}
			if !tc.last.IsZero() {
				s.backup.Status.Retention = &slipwayv1alpha1.BackupRetentionStatus{
					Run: "shop-a", MaintenanceTime: &metav1.Time{Time: tc.last}, MaintenanceSeconds: tc.takes,
				}
			}
			if got := s.maintenanceFits(now); got != tc.want {
				t.Errorf("maintenanceFits = %t, want %t", got, tc.want)
			}
		})
	}
}
