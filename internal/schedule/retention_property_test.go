package schedule

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-dev/slipway/internal/testing/property"
)

// randomHistory returns snapshots of some weeks or years, often several with the same time.
func randomHistory(random *rand.Rand, now time.Time) []Snapshot {
	spread := []time.Duration{time.Hour, 24 * time.Hour, 31 * 24 * time.Hour, 1000 * 24 * time.Hour}[random.IntN(4)]
	verified := 1 + random.IntN(4)
	snapshots := make([]Snapshot, random.IntN(60))
	for i := range snapshots {
		age := time.Duration(random.Int64N(int64(spread))) - spread/50
		snapshots[i] = Snapshot{ID: fmt.Sprint("s", i), Time: now.Add(-age.Truncate(10 * time.Minute)), Verified: random.IntN(5) < verified}
	}
	return snapshots
}

func randomRetention(random *rand.Rand) Retention {
	r := Retention{}
	for _, count := range []*int{&r.Last, &r.Hourly, &r.Daily, &r.Weekly, &r.Monthly, &r.Yearly} {
		if random.IntN(3) == 0 {
			*count = random.IntN(8)
		}
	}
	if random.IntN(3) == 0 {
		r.Within = Period{Months: random.IntN(2), Days: random.IntN(40), Hours: random.IntN(50)}
	}
	zone, err := time.LoadLocation(times[random.IntN(len(times))].zone)
	if err != nil {
		panic(err)
	}
	r.Zone = zone
	return r
}

func TestRetentionOverRandomHistories(t *testing.T) {
	count, source := property.Inputs(t, 20000, 2000)
	random := source(2)
	removed := 0
	for range count {
		now := times[random.IntN(len(times))].at
		snapshots, retention := randomHistory(random, now), randomRetention(random)
		plan := retention.Keep(snapshots, now)
		removed += len(plan.Remove)
		checkRetention(t, retention, snapshots, plan, now)
		random.Shuffle(len(snapshots), func(i, j int) { snapshots[i], snapshots[j] = snapshots[j], snapshots[i] })
		if diff := cmp.Diff(plan, retention.Keep(snapshots, now)); diff != "" {
			t.Fatalf("another order leads to another plan:\n%s", diff)
		}
		if t.Failed() {
			t.Fatalf("%+v of %+v at %v: %+v", retention, snapshots, now, plan)
		}
	}
	if removed < count {
		t.Errorf("only %d snapshots are removed in %d histories", removed, count)
	}
}

func checkRetention(t *testing.T, retention Retention, snapshots []Snapshot, plan Plan, now time.Time) {
	t.Helper()
	if len(plan.Keep)+len(plan.Remove) != len(snapshots) {
		t.Errorf("%d kept and %d removed of %d", len(plan.Keep), len(plan.Remove), len(snapshots))
	}
	checkNewestIsKept(t, snapshots, plan, now)
	checkRules(t, retention, snapshots, plan, now)
	checkNothingMore(t, retention, plan, now)
	checkUnverifiedDoNotCount(t, retention, snapshots, plan, now)
}

func checkNewestIsKept(t *testing.T, snapshots []Snapshot, plan Plan, now time.Time) {
	t.Helper()
	var newest time.Time
	for _, s := range snapshots {
		if s.Verified && !s.Time.After(now) && s.Time.After(newest) {
			newest = s.Time
		}
	}
	verified := false
	for _, d := range plan.Keep {
		verified = verified || d.Verified && d.Time.Equal(newest)
	}
	if !newest.IsZero() && !verified {
		t.Errorf("the newest verified snapshot, of %v, is removed", newest)
	}
	for _, d := range plan.Remove {
		if newest.IsZero() || d.Time.After(now) || (!d.Verified && d.Time.After(newest)) {
			t.Errorf("%+v is removed", d)
		}
	}
}

// checkRules checks that each rule has as many snapshots as it asks for, if there are as many periods.
func checkRules(t *testing.T, retention Retention, snapshots []Snapshot, plan Plan, now time.Time) {
	t.Helper()
	bucket := func(reason string, s Snapshot) string {
		local := s.Time.In(retention.Zone)
		switch reason {
		case ReasonHourly:
			return local.Format("2006-01-02 15 -0700")
		case ReasonDaily:
			return local.Format("2006-01-02")
		case ReasonWeekly:
			year, week := local.ISOWeek()
			return fmt.Sprint(year, " ", week)
		case ReasonMonthly:
			return local.Format("2006-01")
		case ReasonYearly:
			return local.Format("2006")
		default:
			return s.ID
		}
	}
	for reason, want := range map[string]int{
		ReasonLast: retention.Last, ReasonHourly: retention.Hourly, ReasonDaily: retention.Daily,
		ReasonWeekly: retention.Weekly, ReasonMonthly: retention.Monthly, ReasonYearly: retention.Yearly,
	} {
		there := map[string]time.Time{}
		for _, s := range snapshots {
			if b := bucket(reason, s); s.Verified && !s.Time.After(now) && !s.Time.Before(there[b]) {
				there[b] = s.Time
			}
		}
		chosen := map[string]bool{}
		for _, d := range plan.Keep {
			for _, r := range d.Reasons {
				if r != reason {
					continue
				}
				b := bucket(reason, d.Snapshot)
				if chosen[b] || !d.Time.Equal(there[b]) {
					t.Errorf("%s keeps %+v, which is not the newest of %s, or one of several", reason, d, b)
				}
				chosen[b] = true
			}
		}
		if len(chosen) != min(want, len(there)) {
			t.Errorf("%s keeps %d, want %d of %d", reason, len(chosen), want, len(there))
		}
		for b, at := range there {
			for c := range chosen {
				if !chosen[b] && at.After(there[c]) {
					t.Errorf("%s keeps %s and not the newer %s", reason, c, b)
				}
			}
		}
	}
}

// checkNothingMore checks that another run removes nothing more, now or a year later.
func checkNothingMore(t *testing.T, retention Retention, plan Plan, now time.Time) {
	t.Helper()
	var left []Snapshot
	future := false
	for _, d := range plan.Keep {
		left = append(left, d.Snapshot)
		future = future || d.Time.After(now)
	}
	if again := retention.Keep(left, now); len(again.Remove) != 0 {
		t.Errorf("another run removes %+v", again.Remove)
	}
	if later := retention.Keep(left, now.AddDate(1, 0, 0)); !future && len(later.Remove) != 0 {
		t.Errorf("without new snapshots, a run a year later removes %+v", later.Remove)
	}
}

func checkUnverifiedDoNotCount(t *testing.T, retention Retention, snapshots []Snapshot, plan Plan, now time.Time) {
	t.Helper()
	var verified []Snapshot
	for _, s := range snapshots {
		if s.Verified {
			verified = append(verified, s)
		}
	}
	var want []Decision
	for _, d := range plan.Keep {
		if d.Verified {
			want = append(want, d)
		}
	}
	if diff := cmp.Diff(want, retention.Keep(verified, now).Keep, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("without the unverified ones others are kept:\n%s", diff)
	}
}
