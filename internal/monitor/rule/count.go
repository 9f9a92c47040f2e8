package rule

import (
	"fmt"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// These bound what is remembered of one object.
const (
	// maxFields is how many fields are remembered that somebody wrote. Of more, those that were written last.
	maxFields = 32
	// maxPath is how long the path of such a field may be.
	maxPath = 512
)

// counted reports whether a record is a change that somebody made.
func counted(r *change.Record) bool { return r.Type == change.Updated && !r.SchemaDriven }

// countChanges counts changes.
func (s *state) countChanges(rule *changesRule, records []change.Record) {
	for i := range records {
		r := &records[i]
		if !counted(r) || len(rule.paths) > 0 && !slices.ContainsFunc(r.Fields, func(f change.Field) bool { return rule.counts(f.Path) }) {
			continue
		}
		s.Times = append(s.Times, r.Time.UnixNano())
	}
	if extra := len(s.Times) - rule.count; extra > 0 {
		s.Times = slices.Delete(s.Times, 0, extra)
	}
}

// countTurns notes who wrote which fields.
func (s *state) countTurns(rule *fightRule, records []change.Record) {
	for i := range records {
		r := &records[i]
		// Who wrote which of the fields is not known of several.
		if !counted(r) || r.Actor.Name == "" || r.Actor.Confidence == change.Unknown || len(r.Actor.Others) > 0 {
			continue
		}
		for _, field := range r.Fields {
			if len(field.Path) <= maxPath {
				s.writes(rule, field.Path, cut(r.Actor.Name, 128), r.Time.UnixNano())
			}
		}
	}
}

func (s *state) writes(rule *fightRule, path, manager string, now int64) {
	if s.Turns == nil {
		s.Turns = map[string]turns{}
	}
	was, known := s.Turns[path]
	next := turns{Last: manager, Other: was.Other, At: now, Times: was.Times}
	if known && was.Last != manager {
		next.Other = was.Last
		next.Times = append(slices.Clone(was.Times), now)
		if extra := len(next.Times) - rule.turns; extra > 0 {
			next.Times = next.Times[extra:]
		}
	}
	s.Turns[path] = next
	if len(s.Turns) > maxFields {
		delete(s.Turns, s.oldestField())
	}
}

// oldestField is the field with the fewest turns that was written first.
func (s *state) oldestField() string {
	oldest := ""
	for path, t := range s.Turns {
		was := s.Turns[oldest]
		switch {
		case oldest == "", len(t.Times) < len(was.Times):
			oldest = path
		case len(t.Times) == len(was.Times) && (t.At < was.At || t.At == was.At && path < oldest):
			oldest = path
		}
	}
	return oldest
}

// forget removes what lies outside of the window. What lies in the future was noted before the clock was set back: it does not
// count, so that nothing fires early.
func (s *state) forget(r *Rule, now time.Time) {
	old := func(window time.Duration) func(int64) bool {
		from, to := now.Add(-window).UnixNano(), now.UnixNano()
		return func(t int64) bool { return t <= from || t > to }
	}
	if r.changes != nil {
		s.Times = slices.DeleteFunc(s.Times, old(r.changes.window))
	}
	if r.fight == nil {
		return
	}
	isOld := old(r.fight.window)
	for path, t := range s.Turns {
		if isOld(t.At) {
			delete(s.Turns, path)
			continue
		}
		t.Times = slices.DeleteFunc(slices.Clone(t.Times), isOld)
		s.Turns[path] = t
	}
}

// expires is when the first of what is counted will be too old, the zero time if nothing is.
func (s *state) expires(r *Rule) (first time.Time) {
	earlier := func(nanoseconds int64, window time.Duration) {
		if t := at(nanoseconds).Add(window); first.IsZero() || t.Before(first) {
			first = t
		}
	}
	if r.changes != nil && len(s.Times) > 0 {
		earlier(s.Times[0], r.changes.window)
	}
	if r.fight != nil {
		for _, t := range s.Turns {
			earlier(t.At, r.fight.window)
			if len(t.Times) > 0 {
				earlier(t.Times[0], r.fight.window)
			}
		}
	}
	return first
}

// fights reports whether a field has changed hands often enough.
func (s *state) fights(rule *fightRule) bool {
	for _, t := range s.Turns {
		if len(t.Times) >= rule.turns {
			return true
		}
	}
	return false
}

// fighters names the field with the most turns, and who writes it.
func (s *state) fighters(rule *fightRule) (path, managers string) {
	for p, t := range s.Turns {
		if len(t.Times) >= rule.turns && (path == "" || p < path) {
			path = p
			managers = fmt.Sprintf("%q and %q", min(t.Last, t.Other), max(t.Last, t.Other))
		}
	}
	return path, managers
}
