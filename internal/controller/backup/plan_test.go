package backup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

var created = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// at is a time of May 2026.
func at(day, hour, minute int) time.Time {
	return time.Date(2026, 5, day, hour, minute, 0, 0, time.UTC)
}

// nightly is a Backup at two o'clock, made on 1 May at noon. Its UID has no jitter.
func nightly(change ...func(*slipwayv1alpha1.Backup)) *slipwayv1alpha1.Backup {
	b := &slipwayv1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", CreationTimestamp: metav1.NewTime(created)},
		Spec:       slipwayv1alpha1.BackupSpec{Schedule: "0 2 * * *"},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func seenTo(last time.Time) func(*slipwayv1alpha1.Backup) {
	return func(b *slipwayv1alpha1.Backup) { b.Status.LastSlot = &metav1.Time{Time: last} }
}

func TestWhenRunsAreDue(t *testing.T) {
	suspended := func(b *slipwayv1alpha1.Backup) { b.Spec.Suspend = true }
	soon := func(b *slipwayv1alpha1.Backup) { b.Spec.StartingDeadline = "1h" }
	once := func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = "" }
	tests := map[string]struct {
		backup  *slipwayv1alpha1.Backup
		now     time.Time
		slot    time.Time
		handled time.Time
		missed  int64
	}{
		"before the first slot":             {nightly(), at(1, 13, 0), time.Time{}, created, 0},
		"long after a slot":                 {nightly(seenTo(at(2, 2, 0))), at(3, 9, 0), at(3, 2, 0), at(3, 2, 0), 0},
		"after three slots":                 {nightly(seenTo(at(2, 2, 0))), at(5, 9, 0), at(5, 2, 0), at(5, 2, 0), 2},
		"after three slots, too late":       {nightly(seenTo(at(2, 2, 0)), soon), at(5, 9, 0), time.Time{}, at(5, 2, 0), 3},
		"suspended":                         {nightly(seenTo(at(2, 2, 0)), suspended), at(5, 9, 0), time.Time{}, at(5, 2, 0), 3},
		"seen to":                           {nightly(seenTo(at(5, 2, 0))), at(5, 9, 0), time.Time{}, at(5, 2, 0), 0},
		"the clock was set back":            {nightly(seenTo(at(5, 2, 0))), at(3, 9, 0), time.Time{}, at(5, 2, 0), 0},
		"without a schedule":                {nightly(once), at(1, 13, 0), created, created, 0},
		"without a schedule, seen to":       {nightly(once, seenTo(created)), at(9, 13, 0), time.Time{}, time.Time{}, 0},
		"without a schedule, and suspended": {nightly(once, suspended), at(9, 13, 0), time.Time{}, time.Time{}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := planned(tc.backup, tc.now.Add(maxJitter), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if !got.slot.Equal(tc.slot) || !got.handled.Equal(tc.handled) || got.missed != tc.missed {
				t.Errorf("got slot %v, handled %v, %d missed, want %v, %v, %d", got.slot, got.handled, got.missed, tc.slot, tc.handled, tc.missed)
			}
		})
	}
}

// A nightly copy may be as old as two nights, less what a run may be late.
func TestWhatAScheduleAsks(t *testing.T) {
	tests := map[string]struct {
		schedule  string
		last, now time.Time
		met       bool
	}{
		"a new Backup":                              {"0 2 * * *", time.Time{}, at(1, 13, 0), true},
		"no copy on the day of the first slot":      {"0 2 * * *", time.Time{}, at(2, 23, 0), true},
		"no copy a day after the first slot":        {"0 2 * * *", time.Time{}, at(3, 3, 0), false},
		"last night's copy":                         {"0 2 * * *", at(5, 2, 10), at(5, 9, 0), true},
		"the copy of the night before":              {"0 2 * * *", at(4, 2, 10), at(5, 9, 0), true},
		"the copy of two nights before":             {"0 2 * * *", at(3, 2, 10), at(5, 9, 0), false},
		"weekly, a day after a slot without a copy": {"0 2 * * 0", at(3, 2, 10), at(11, 9, 0), false},
		"weekly, hours after a slot without a copy": {"0 2 * * 0", at(3, 2, 10), at(10, 9, 0), true},
		"hourly, the copy of the last hour but one": {"0 * * * *", at(5, 7, 1), at(5, 9, 30), false},
		"hourly, the copy of the last hour":         {"0 * * * *", at(5, 8, 1), at(5, 9, 30), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := nightly(func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = tc.schedule })
			p, err := planned(b, tc.now, tc.last)
			if err != nil {
				t.Fatal(err)
			}
			if p.met(tc.last) != tc.met {
				t.Errorf("met is %v, want %v; expected is a copy of %v", !tc.met, tc.met, p.expected)
			}
			// It is looked at again at the moment when the promise breaks, and not before.
			if !tc.met || p.late.IsZero() {
				return
			}
			before, err := planned(b, p.late.Add(-time.Second), tc.last)
			if err != nil || !before.met(tc.last) {
				t.Errorf("it is broken a second before %v already, %v", p.late, err)
			}
			after, err := planned(b, p.late, tc.last)
			if err != nil || after.met(tc.last) {
				t.Errorf("it is not broken at %v, %v", p.late, err)
			}
		})
	}
}

// C stands for a run that completed, F for one that failed, and o for one that has not ended.
func TestHistory(t *testing.T) {
	tests := map[string]struct {
		newestFirst string
		limit       int
		deleted     string
	}{
		"no more than the limit":              {"CFC", 3, ""},
		"more than the limit":                 {"CFCF", 2, "2 3"},
		"the last that completed is kept":     {"FFFFC", 2, "2 3"},
		"what has not ended does not count":   {"oCF", 2, ""},
		"what has not ended is never deleted": {"CCo", 1, "1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var runs []slipwayv1alpha1.BackupRun
			for i, c := range tc.newestFirst {
				run := slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}}
				run.Status.Phase = map[rune]slipwayv1alpha1.BackupPhase{'C': slipwayv1alpha1.BackupCompleted, 'F': slipwayv1alpha1.BackupFailed, 'o': slipwayv1alpha1.BackupRunning}[c]
				runs = append(runs, run)
			}
			var names []string
			for _, run := range history(runs, tc.limit) {
				names = append(names, run.Name)
			}
			if diff := cmp.Diff(tc.deleted, strings.Join(names, " ")); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
}
