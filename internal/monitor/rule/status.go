package rule

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Status is how a rule does.
type Status struct {
	// Firing is for how many objects an alarm stands, and Objects are some of them, in the order of their names.
	Firing  int
	Objects []Standing
	// LastFired is when an alarm was last raised, the zero time if not since the start.
	LastFired time.Time
	// Failing is for how many objects an expression fails, at most about 1,000 of each kind, and FailedFor and Failure say it of
	// one of them.
	Failing   int
	FailedFor Object
	Failure   string
	// Reviewed reports whether every object that was there has been looked at for what the rule says now. The engine does not know.
	Reviewed bool
}

// Standing is an alarm that stands.
type Standing struct {
	Object  Object
	Since   time.Time
	Message string
}

// StandingAlarm is an alarm that stands, with its rule.
type StandingAlarm struct {
	Standing
	// Rule and Severity are as they were when it was raised.
	Rule     string
	Severity slipwayv1alpha1.MonitorSeverity
}

// Standing returns all alarms that stand, the newest first.
func (e *Engine) Standing() []StandingAlarm {
	var all []StandingAlarm
	for _, kind := range e.Kinds() {
		sh := e.lock(kind)
		for _, states := range sh.states {
			for _, s := range states {
				if s.Fired != 0 {
					all = append(all, StandingAlarm{Standing{s.Object, at(s.Fired), s.Message}, s.Rule, s.Severity})
				}
			}
		}
		sh.mutex.Unlock()
	}
	slices.SortFunc(all, func(a, b StandingAlarm) int {
		return cmp.Or(b.Since.Compare(a.Since), a.Object.compare(b.Object), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}

// MaxObjects is how many objects Status names.
const MaxObjects = 20

// Status returns how a rule does. It takes time in proportion to what is remembered of the rule.
func (e *Engine) Status(rule types.UID) Status {
	var status Status
	for _, kind := range e.Kinds() {
		sh := e.lock(kind)
		for _, s := range sh.states[rule] {
			if s.Fired != 0 {
				status.Firing++
				status.Objects = append(status.Objects, Standing{s.Object, at(s.Fired), s.Message})
			}
		}
		for _, f := range sh.failing[rule] {
			status.Failing++
			if status.Failure == "" || f.object.compare(status.FailedFor) < 0 {
				status.FailedFor, status.Failure = f.object, f.message
			}
		}
		if fired := sh.lastFired[rule]; fired.After(status.LastFired) {
			status.LastFired = fired
		}
		sh.mutex.Unlock()
	}
	slices.SortFunc(status.Objects, func(a, b Standing) int { return a.Object.compare(b.Object) })
	status.Objects = status.Objects[:min(len(status.Objects), MaxObjects)]
	return status
}

// Fails reports whether an expression of a rule fails for an object.
func (e *Engine) Fails(rule types.UID) bool {
	for _, kind := range e.Kinds() {
		sh := e.lock(kind)
		fails := len(sh.failing[rule]) > 0
		sh.mutex.Unlock()
		if fails {
			return true
		}
	}
	return false
}

func (o Object) compare(other Object) int {
	return cmp.Or(cmp.Compare(o.Group, other.Group), cmp.Compare(o.Kind, other.Kind), cmp.Compare(o.Namespace, other.Namespace),
		cmp.Compare(o.Name, other.Name), cmp.Compare(o.UID, other.UID))
}
