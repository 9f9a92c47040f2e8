package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/schedule"
)

// latest returns the ID of the newest verified snapshot that a restore asks for.
func latest(all []engine.Snapshot, c mover.Restore) (string, error) {
	refuse := func(kind engine.Kind, text string) (string, error) {
		return "", &engine.Error{Kind: kind, Doing: "find the snapshot to restore", Err: errors.New(text)}
	}
	if c.Snapshot != "" || c.Run != "" {
		return refuse(engine.KindInvalid, "of snapshot, run and latest one has to be set")
	}
	var volumes []string
	var newest *engine.Snapshot
	for i, s := range all {
		if !slices.Contains(volumes, s.Volume) {
			volumes = append(volumes, s.Volume)
		}
		if s.Verified == nil || (c.Volume != "" && s.Volume != c.Volume) || (!c.AsOf.IsZero() && heldUntil(s).After(c.AsOf)) {
			continue
		}
		if newest == nil || newer(s, *newest) {
			newest = &all[i]
		}
	}
	switch {
	case c.Volume == "" && len(volumes) > 1:
		slices.Sort(volumes)
		return refuse(engine.KindInvalid, fmt.Sprintf("the repository holds the volumes %q, and none is named", volumes))
	case newest == nil && !c.AsOf.IsZero():
		return refuse(engine.KindNotFound, "there is no verified snapshot of "+c.AsOf.UTC().Format(time.RFC3339)+" or earlier")
	case newest == nil:
		return refuse(engine.KindNotFound, "there is no verified snapshot")
	default:
		return newest.ID, nil
	}
}

// newer reports whether the source of a is of a later moment than that of b. Reading decides about the same moment.
func newer(a, b engine.Snapshot) bool {
	if !a.SourceTime.Equal(b.SourceTime) {
		return a.SourceTime.After(b.SourceTime)
	}
	return a.Start.After(b.Start)
}

// heldUntil is a moment after which no write can be in a copy. A snapshot of the volume is taken some time after it is asked for,
// which is SourceTime, and before reading begins. Without one that is the end of reading.
func heldUntil(s engine.Snapshot) time.Time {
	if s.SourceTime.Before(s.Start) {
		return s.Start
	}
	return s.End
}

// planned returns the IDs of the snapshots that no rule keeps. Each volume is kept by the rules for itself.
func planned(all []engine.Snapshot, c mover.Retention, now time.Time) ([]string, error) {
	const doing = "decide what to expire"
	rules, err := rulesOf(c)
	if err != nil {
		return nil, &engine.Error{Kind: engine.KindInvalid, Doing: doing, Err: err}
	}
	volumes := map[string][]schedule.Snapshot{}
	for _, s := range all {
		volumes[s.Volume] = append(volumes[s.Volume], schedule.Snapshot{ID: s.ID, Time: s.SourceTime, Verified: s.Verified != nil})
	}
	var remove []string
	for _, snapshots := range volumes {
		plan := rules.Keep(snapshots, now)
		if err := plan.Check(c.Limit, c.Confirmed); err != nil {
			return nil, &engine.Error{Kind: engine.KindMassDeletion, Doing: doing, Err: err}
		}
		for _, s := range plan.Remove {
			remove = append(remove, s.ID)
		}
	}
	return remove, nil
}

func rulesOf(c mover.Retention) (schedule.Retention, error) {
	rules := schedule.Retention{Last: c.Last, Hourly: c.Hourly, Daily: c.Daily, Weekly: c.Weekly, Monthly: c.Monthly, Yearly: c.Yearly}
	if c.Within != "" {
		within, err := schedule.ParseRetentionPolicy(c.Within)
		if err != nil {
			return rules, err
		}
		rules.Within = within
	}
	zone, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return rules, err
	}
	rules.Zone = zone
	return rules, rules.Validate()
}
