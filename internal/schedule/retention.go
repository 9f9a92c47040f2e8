package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Snapshot is a snapshot in a repository.
type Snapshot struct {
	// ID identifies the snapshot.
	ID string
	// Time is when the data was read.
	Time time.Time
	// Verified means that the snapshot was verified after it was written.
	Verified bool
}

// Retention says which snapshots are kept. A snapshot is kept if one rule keeps it. A rule that is 0 keeps nothing. Hourly
// keeps the newest snapshot of each of the last hours that have one, and so do the other rules for their periods. Weeks
// begin on Monday.
type Retention struct {
	Last, Hourly, Daily, Weekly, Monthly, Yearly int
	// Within keeps every snapshot that is not older than the period before the newest one. It does not count from the
	// present time: when backups stop, nothing more is removed.
	Within Period
	// Zone is the time zone of hours, days and so on. Nil means UTC.
	Zone *time.Location
}

// The reasons for which a snapshot is kept or removed.
const (
	ReasonNewest     = "newest verified snapshot"
	ReasonFuture     = "its time is in the future"
	ReasonUnverified = "not verified yet"
	ReasonLast       = "last"
	ReasonHourly     = "hourly"
	ReasonDaily      = "daily"
	ReasonWeekly     = "weekly"
	ReasonMonthly    = "monthly"
	ReasonYearly     = "yearly"
	ReasonWithin     = "within"

	ReasonNoRule     = "no rule keeps it"
	ReasonSuperseded = "not verified, and a newer snapshot is"
)

// Decision is what happens to a snapshot, with all reasons.
type Decision struct {
	Snapshot

	Reasons []string
}

// Plan is what happens to the snapshots of a repository. Both lists are sorted, the newest snapshot first.
type Plan struct{ Keep, Remove []Decision }

// Validate returns an *Error if a rule is out of bounds, or if no rule keeps anything.
func (r Retention) Validate() error {
	for _, rule := range r.rules() {
		if rule.count < 0 || rule.count > maxCount {
			return invalid(FieldRetention+"."+rule.reason, "must be from 0 to %d", maxCount)
		}
	}
	for _, count := range []int{r.Within.Years, r.Within.Months, r.Within.Weeks, r.Within.Days, r.Within.Hours} {
		if count < 0 || count > maxCount {
			return invalid(FieldRetentionPolicy, "each number must be from 1 to %d", maxCount)
		}
	}
	if r.Within == (Period{}) && !slices.ContainsFunc(r.rules(), func(rule rule) bool { return rule.count > 0 }) {
		return invalid(FieldRetention, "keeps nothing: set at least one of last, hourly, daily, weekly, monthly and yearly")
	}
	return nil
}

// rule keeps the newest snapshot of each of the last periods. key returns the same value for all times of a period.
type rule struct {
	reason string
	count  int
	key    func(t time.Time) [5]int
}

func (r Retention) rules() []rule {
	return []rule{
		{ReasonHourly, r.Hourly, func(t time.Time) [5]int {
			// The offset keeps the two hours apart that show the same time when the clock is set back.
			_, offset := t.Zone()
			return [5]int{t.Year(), int(t.Month()), t.Day(), t.Hour(), offset}
		}},
		{ReasonDaily, r.Daily, func(t time.Time) [5]int { return [5]int{t.Year(), int(t.Month()), t.Day()} }},
		{ReasonWeekly, r.Weekly, func(t time.Time) [5]int {
			year, week := t.ISOWeek()
			return [5]int{year, week}
		}},
		{ReasonMonthly, r.Monthly, func(t time.Time) [5]int { return [5]int{t.Year(), int(t.Month())} }},
		{ReasonYearly, r.Yearly, func(t time.Time) [5]int { return [5]int{t.Year()} }},
		{ReasonLast, r.Last, nil},
	}
}

// Keep decides which snapshots are kept. Only verified snapshots count for the rules. Always kept are the newest verified
// snapshot, everything if none is verified, snapshots whose time is after now, and unverified ones that may still be
// verified: those without a newer verified one. The order of the snapshots does not matter.
func (r Retention) Keep(snapshots []Snapshot, now time.Time) Plan {
	zone := r.Zone
	if zone == nil {
		zone = time.UTC
	}
	decisions := make([]Decision, len(snapshots))
	for i, snapshot := range snapshots {
		decisions[i].Snapshot = snapshot
	}
	slices.SortFunc(decisions, func(a, b Decision) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.ID, b.ID), compareBool(b.Verified, a.Verified))
	})
	var verified []*Decision
	for i := range decisions {
		d := &decisions[i]
		switch {
		case d.Time.After(now):
			d.Reasons = append(d.Reasons, ReasonFuture)
		case d.Verified:
			verified = append(verified, d)
		case len(verified) == 0:
			d.Reasons = append(d.Reasons, ReasonUnverified)
		}
	}
	if len(verified) > 0 {
		r.apply(decisions, verified, zone)
	}
	return split(decisions)
}

// apply adds the reasons of the rules. The first verified snapshot is the newest.
func (r Retention) apply(decisions []Decision, verified []*Decision, zone *time.Location) {
	newest := verified[0]
	newest.Reasons = append(newest.Reasons, ReasonNewest)
	for _, rule := range r.rules() {
		rule.apply(verified, zone)
	}
	if r.Within == (Period{}) {
		return
	}
	from := r.Within.Before(newest.Time.In(zone))
	for i := range decisions {
		if d := &decisions[i]; !d.Time.Before(from) {
			d.Reasons = append(d.Reasons, ReasonWithin)
		}
	}
}

func (r rule) apply(verified []*Decision, zone *time.Location) {
	kept := 0
	seen := map[[5]int]bool{}
	for _, d := range verified {
		if kept >= r.count {
			return
		}
		if r.key != nil {
			key := r.key(d.Time.In(zone))
			if seen[key] {
				continue
			}
			seen[key] = true
		}
		kept++
		d.Reasons = append(d.Reasons, r.reason)
	}
}

func split(decisions []Decision) Plan {
	var plan Plan
	for _, d := range decisions {
		switch {
		case len(d.Reasons) > 0:
			plan.Keep = append(plan.Keep, d)
		case d.Verified:
			d.Reasons = []string{ReasonNoRule}
			plan.Remove = append(plan.Remove, d)
		default:
			d.Reasons = []string{ReasonSuperseded}
			plan.Remove = append(plan.Remove, d)
		}
	}
	return plan
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// MassDeletionError says that a plan removes more snapshots at once than is allowed without a confirmation.
type MassDeletionError struct{ Remove, Keep, Limit int }

// Error returns the numbers.
func (e *MassDeletionError) Error() string {
	return fmt.Sprintf("%d snapshots would be removed and %d kept: more than %d at once need a confirmation", e.Remove, e.Keep, e.Limit)
}

// Check returns a *MassDeletionError if the plan removes more than limit snapshots and the user has not confirmed that.
func (p Plan) Check(limit int, confirmed bool) error {
	if confirmed || len(p.Remove) <= limit {
		return nil
	}
	return &MassDeletionError{Remove: len(p.Remove), Keep: len(p.Keep), Limit: limit}
}
