package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestDue(t *testing.T) {
	for name, test := range map[string]struct {
		cron, last, now string
		deadline        time.Duration
		want            Due
	}{
		"before the first slot": {
			"0 2 * * *", "2026-01-01T03:00:00Z", "2026-01-01T12:00:00Z", 0,
			Due{Handled: at("2026-01-01T03:00:00Z"), Next: at("2026-01-02T02:00:00Z")},
		},
		"at the slot": {
			"0 2 * * *", "2026-01-01T02:00:00Z", "2026-01-02T02:00:00Z", 0,
			Due{Slot: at("2026-01-02T02:00:00Z"), Handled: at("2026-01-02T02:00:00Z"), Next: at("2026-01-03T02:00:00Z")},
		},
		"handled": {
			"0 2 * * *", "2026-01-02T02:00:00Z", "2026-01-02T02:00:30Z", 0,
			Due{Handled: at("2026-01-02T02:00:00Z"), Next: at("2026-01-03T02:00:00Z")},
		},
		"late, within the deadline": {
			"0 2 * * *", "2026-01-01T02:00:00Z", "2026-01-02T02:59:00Z", time.Hour,
			Due{Slot: at("2026-01-02T02:00:00Z"), Handled: at("2026-01-02T02:00:00Z"), Next: at("2026-01-03T02:00:00Z")},
		},
		"at the deadline": {
			"0 2 * * *", "2026-01-01T02:00:00Z", "2026-01-02T03:00:00Z", time.Hour,
			Due{Slot: at("2026-01-02T02:00:00Z"), Handled: at("2026-01-02T02:00:00Z"), Next: at("2026-01-03T02:00:00Z")},
		},
		"after the deadline": {
			"0 2 * * *", "2026-01-01T02:00:00Z", "2026-01-02T03:00:01Z", time.Hour,
			Due{Handled: at("2026-01-02T02:00:00Z"), Missed: 1, Next: at("2026-01-03T02:00:00Z")},
		},
		"one catch-up for several": {
			"0 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T05:20:00Z", 0,
			Due{Slot: at("2026-01-01T05:00:00Z"), Handled: at("2026-01-01T05:00:00Z"), Missed: 4, Next: at("2026-01-01T06:00:00Z")},
		},
		"no catch-up after the deadline": {
			"0 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T05:20:00Z", 10 * time.Minute,
			Due{Handled: at("2026-01-01T05:00:00Z"), Missed: 5, Next: at("2026-01-01T06:00:00Z")},
		},
		"as many as are counted": {
			"* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:41:00Z", 0,
			Due{Slot: at("2026-01-01T01:41:00Z"), Handled: at("2026-01-01T01:41:00Z"), Missed: 100, Next: at("2026-01-01T01:42:00Z")},
		},
		"more than are counted": {
			"* * * * *", "2016-01-01T00:00:00Z", "2026-01-01T01:42:00Z", 0,
			Due{Slot: at("2026-01-01T01:42:00Z"), Handled: at("2026-01-01T01:42:00Z"), Missed: 100, MoreMissed: true, Next: at("2026-01-01T01:43:00Z")},
		},
		"the one after the deadline is more than are counted": {
			"* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:41:30Z", time.Second,
			Due{Handled: at("2026-01-01T01:41:00Z"), Missed: 100, MoreMissed: true, Next: at("2026-01-01T01:42:00Z")},
		},
		"the clock was set back": {
			"0 2 * * *", "2026-01-05T02:00:00Z", "2026-01-04T02:00:00Z", 0,
			Due{Handled: at("2026-01-05T02:00:00Z"), Next: at("2026-01-06T02:00:00Z")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse(t, test.cron, "").Due(at(test.last), at(test.now), test.deadline)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Two thousand years of minutes cost no more than a hundred.
func TestALongPauseCostsLittle(t *testing.T) {
	for _, cron := range []string{"* * * * *", "0 0 29 2 *", "0 0 1 1 *"} {
		got := parse(t, cron, "Europe/Berlin").Due(time.Time{}, at("2026-01-01T00:00:00Z"), 0)
		if got.Missed != MaxMissed || !got.MoreMissed || got.Slot.IsZero() {
			t.Errorf("%s: %+v", cron, got)
		}
	}
}

// Whatever the moments at which it is asked, every slot is run or counted as missed, and none is run twice.
func TestEverySlotIsRunOrMissedOnce(t *testing.T) {
	for _, place := range times {
		for _, cron := range []string{"*/20 * * * *", "30 2 * * *", "*/15 1-3 * * *", "0 0 * * *"} {
			s := parse(t, cron, place.zone)
			from, until := place.at.Add(-50*time.Hour), place.at.Add(50*time.Hour)
			run, missed := map[int64]bool{}, 0
			last, step := from, 0
			for now := from; !now.After(until); now = now.Add(time.Duration(7+step%90) * time.Minute) {
				step += 13
				due := s.Due(last, now, 20*time.Minute)
				if !due.Slot.IsZero() && run[due.Slot.Unix()] {
					t.Fatalf("%s in %s: %v runs twice", cron, place.zone, due.Slot)
				}
				if !due.Slot.IsZero() {
					run[due.Slot.Unix()] = true
				}
				if !due.Next.After(now) {
					t.Fatalf("%s in %s: the slot after %v is %v", cron, place.zone, now, due.Next)
				}
				missed += due.Missed
				last = due.Handled
			}
			if want := len(model(s, from, last)); len(run)+missed != want {
				t.Errorf("%s in %s: %d run and %d missed of %d", cron, place.zone, len(run), missed, want)
			}
		}
	}
}
