package backup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/schedule"
)

// drilledAt is a nightly Backup with a drill at four o'clock on Sundays, the 3rd and 10th of May.
func drilledAt(change ...func(*slipwayv1alpha1.Backup)) *slipwayv1alpha1.Backup {
	b := nightly(func(b *slipwayv1alpha1.Backup) {
		b.Spec.Verify = &slipwayv1alpha1.BackupVerify{Drill: &slipwayv1alpha1.BackupDrill{Schedule: "0 4 * * 0"}}
	})
	for _, c := range change {
		c(b)
	}
	return b
}

func drillSeenTo(last time.Time) func(*slipwayv1alpha1.Backup) {
	return func(b *slipwayv1alpha1.Backup) {
		b.Status.Drill = &slipwayv1alpha1.BackupDrillStatus{LastSlot: &metav1.Time{Time: last}}
	}
}

func asked(value string) func(*slipwayv1alpha1.Backup) {
	return func(b *slipwayv1alpha1.Backup) {
		b.Annotations = map[string]string{slipwayv1alpha1.AnnotationDrill: value}
	}
}

func TestWhenDrillsAreDue(t *testing.T) {
	suspended := func(b *slipwayv1alpha1.Backup) { b.Spec.Suspend = true }
	byHand := func(b *slipwayv1alpha1.Backup) { b.Spec.Verify.Drill.Schedule = "" }
	berlin := func(b *slipwayv1alpha1.Backup) { b.Spec.TimeZone = "Europe/Berlin" }
	answered := func(b *slipwayv1alpha1.Backup) { b.Status.Drill.LastRequest = desired.Request(b) }
	jitter := schedule.Jitter("/drill", maxJitter)
	third, tenth := at(3, 4, 0), at(10, 4, 0)
	tests := map[string]struct {
		backup    *slipwayv1alpha1.Backup
		now       time.Time
		name      string
		handled   time.Time
		next      time.Time
		byRequest bool
	}{
		"first seen, long after slots":       {drilledAt(), at(20, 9, 0), "", at(20, 9, 0), at(24, 4, 0).Add(jitter), false},
		"before the slot":                    {drilledAt(drillSeenTo(created)), at(3, 3, 59), "", created, third.Add(jitter), false},
		"a second before its time":           {drilledAt(drillSeenTo(created)), third.Add(jitter - time.Second), "", created, third.Add(jitter), false},
		"at its time":                        {drilledAt(drillSeenTo(created)), third.Add(jitter), desired.DrillOfSlot(nightly(), third), third, tenth.Add(jitter), false},
		"days later, the operator was away":  {drilledAt(drillSeenTo(created)), at(6, 9, 0), desired.DrillOfSlot(nightly(), third), third, tenth.Add(jitter), false},
		"weeks later, only the newest":       {drilledAt(drillSeenTo(created)), at(12, 9, 0), desired.DrillOfSlot(nightly(), tenth), tenth, at(17, 4, 0).Add(jitter), false},
		"seen to":                            {drilledAt(drillSeenTo(third)), at(6, 9, 0), "", third, tenth.Add(jitter), false},
		"the clock was set back":             {drilledAt(drillSeenTo(tenth)), at(6, 9, 0), "", tenth, at(17, 4, 0).Add(jitter), false},
		"suspended":                          {drilledAt(drillSeenTo(created), suspended), at(6, 9, 0), "", third, time.Time{}, false},
		"in a zone":                          {drilledAt(drillSeenTo(created), berlin), at(3, 2, 0).Add(jitter), desired.DrillOfSlot(nightly(), at(3, 2, 0)), at(3, 2, 0), at(10, 2, 0).Add(jitter), false},
		"by hand only":                       {drilledAt(byHand), at(6, 9, 0), "", time.Time{}, time.Time{}, false},
		"by hand only, asked for":            {drilledAt(byHand, asked("x")), at(6, 9, 0), "shop-drill-2d711642b7", time.Time{}, time.Time{}, true},
		"asked for while suspended":          {drilledAt(drillSeenTo(third), suspended, asked("x")), at(6, 9, 0), "shop-drill-2d711642b7", third, time.Time{}, true},
		"asked for when a slot is due":       {drilledAt(drillSeenTo(created), asked("x")), at(6, 9, 0), "shop-drill-2d711642b7", third, tenth.Add(jitter), true},
		"asked for, and answered":            {drilledAt(drillSeenTo(third), asked("x"), answered), at(6, 9, 0), "", third, tenth.Add(jitter), false},
		"asked for anew with another value":  {drilledAt(drillSeenTo(third), asked("x"), answered, asked("y")), at(6, 9, 0), "shop-drill-a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa"[:len("shop-drill-")+10], third, tenth.Add(jitter), true},
		"asked for with something very long": {drilledAt(byHand, asked(string(make([]byte, 100_000)))), at(6, 9, 0), "shop-drill-" + desired.Request(drilledAt(asked(string(make([]byte, 100_000))))), time.Time{}, time.Time{}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := plannedDrill(tc.backup, tc.now)
			if err != nil {
				t.Fatal(err)
			}
			if got.name != tc.name || !got.handled.Equal(tc.handled) || !got.next.Equal(tc.next) || (got.request != "") != tc.byRequest {
				t.Errorf("got %+v, want %+v", got, tc)
			}
			if len(desired.DrillJobName(got.name, mostAttempts)) > 63 {
				t.Errorf("the name of the Job is too long: %q", got.name)
			}
		})
	}
}

const mostAttempts = 3

// The name of a Job is a label of its pods.
func TestTheNamesOfDrillsFit(t *testing.T) {
	b := drilledAt(asked("x"), func(b *slipwayv1alpha1.Backup) { b.Name = "a-name-of-forty-characters-that-is-right" })
	if len(b.Name) != 40 {
		t.Fatalf("the name has %d characters", len(b.Name))
	}
	for _, name := range []string{desired.DrillOfSlot(b, at(3, 4, 0)), desired.DrillOfRequest(b, desired.Request(b))} {
		if job := desired.DrillJobName(name, mostAttempts); len(job) > 63 {
			t.Errorf("%q has %d characters", job, len(job))
		}
	}
}

func TestWhatNoDrillCanMeanIsRefused(t *testing.T) {
	for text, field := range map[string]string{"0 0 4 * * *": "spec.verify.drill.schedule", "0 0 31 2 *": "spec.verify.drill.schedule", "never": "spec.verify.drill.schedule"} {
		b := drilledAt(func(b *slipwayv1alpha1.Backup) { b.Spec.Verify.Drill.Schedule = text })
		_, err := plannedDrill(b, at(3, 4, 0))
		worst := outcome.Worst(err)
		if worst == nil || worst.Kind != outcome.Invalid || len(worst.Message) <= len(field) || worst.Message[:len(field)] != field {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
