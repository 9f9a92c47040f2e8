package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

// settle waits until the cluster is at steady state, in the wanted state if there is one. within
// is how long it may take until the operator does anything.
func (r *run) settle(want map[string]any, within time.Duration) error {
	rest := idle
	if want == nil {
		rest = max(referenceIdle, within)
	}
	rest = max(rest, r.trial.Idle)
	now := time.Now()
	s := &settling{
		run: r, want: want, unreported: now.Add(within), before: r.gate.Written(), pace: newPace(now, SettleWithin, rest), last: -1,
		since: now,
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if over, err := s.look(); over || err != nil {
			return err
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-tick.C:
		}
	}
}

// settling is a step on its way to a steady state.
type settling struct {
	*run
	want map[string]any
	// unreported is until when nothing tells the operator of the step, which it shows by having
	// written no more than before.
	unreported time.Time
	before     int
	pace       *pace
	// last is the activity that was seen last, since when there was none, and arrived
	// whether everything was as it should be then.
	last    int
	since   time.Time
	arrived bool
}

// look reports whether the step is over.
func (s *settling) look() (over bool, err error) {
	if s.restart() {
		// The new operator has not had its time yet.
		s.pace, s.since = newPace(time.Now(), s.pace.within, s.pace.rest), time.Now()
	}
	// Before the activity: what a reconcile has written that is over now is seen in that.
	left := s.leftToDo()
	withheld := s.withheld()
	s.pace.look(time.Now(), withheld || time.Now().Before(s.unreported) && s.gate.Written() == s.before)
	if now := s.activity(); now != s.last {
		s.last, s.since = now, time.Now()
		s.arrived = s.isAs(s.want)
		s.pace.moved()
	}
	if withheld {
		// What is seen at last may still lead to something.
		s.since = time.Now()
	}
	s.place.busy(!withheld && time.Since(s.since) < s.busyFor())
	if s.arrived && left == "" && time.Since(s.since) >= s.pace.rest && s.player.Idle(s.Context()) {
		shown, err := s.shown(s.want)
		if err != nil {
			return false, err
		}
		if shown {
			s.rested()
			return true, nil
		}
		s.since = time.Now()
	}
	if err := s.pace.over(s.arrived); err != nil {
		if s.arrived && left != "" {
			err = fmt.Errorf("%w: %s", err, left)
		}
		return false, s.differs(s.want, err)
	}
	return false, nil
}

// busyFor is how long nothing may happen for a run to count as busy. Where nobody knows how it ends, it may go on for idle.
func (s *settling) busyFor() time.Duration {
	switch {
	case s.want == nil:
		return idle
	case s.arrived:
		return 0
	default:
		return stuck
	}
}

// rested notes how long it took, unless others are only to be compared with it.
func (s *settling) rested() {
	if s.want != nil {
		s.Times.settled(stepTime{fmt.Sprintf("%s step %d", s.Name(), s.number), s.pace.came, s.pace.all})
	}
}

// withheld reports whether the operator, or the test, cannot know what has happened, or the
// operator cannot act, because of what goes wrong.
func (r *run) withheld() bool {
	return r.delay != nil && (r.delay.Withholds() || r.delay.Blind()) || r.Recorder.Blind() || !r.trial.OwnWatches && r.Relay.Blind() ||
		r.gate.AskedToWait() || r.gate.Holds() || r.trial.Withheld != nil && r.trial.Withheld(r.namespace)
}

// leftToDo says what a step still waits for: what the steps did was not seen, an operator has not looked at it, or means to look
// again soon, or a write is under way. It is empty where nothing is left. That nothing is written for a while proves less. On a
// busy machine an operator that was just started may not have begun. A running one may not know of the step yet, and after the
// step everything may have to be as before.
func (r *run) leftToDo() string {
	for name, done := range r.done {
		if !r.Recorder.Saw(r.namespace, name, done) {
			return "what was done to " + name + " was not seen"
		}
	}
	numbers := r.Recorder.Numbers(r.namespace)
	switch {
	// An operator that is shown things late is waited for otherwise: see withheld.
	case r.delay == nil && slices.ContainsFunc(r.views, func(s *shown) bool { return s.behind(numbers) }):
		return "an operator was not shown everything"
	case slices.ContainsFunc(r.queues, func(q *queues) bool { return !q.idle(soon) }):
		return "an operator has something left to do"
	case r.gate.InFlight() > 0:
		return "a write has no answer"
	default:
		return ""
	}
}

// shown reports whether the recorder has seen the namespace as it is. A reference always asks the
// API server, because it must not miss what a busy machine shows late. Other runs ask only if
// their trial is Live.
func (r *run) shown(want map[string]any) (bool, error) {
	if want != nil && !r.trial.Live {
		return true, nil
	}
	return r.Recorder.UpToDate(r.Context(), r.Env.Client, r.namespaces()...)
}

// begun waits until one of the operator's writes since then was accepted.
func (r *run) begun(since int) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	p := newPace(time.Now(), SettleWithin, 0)
	for !slices.ContainsFunc(r.gate.Writes()[since:], r.mayBeAccepted) {
		if r.restart() {
			p = newPace(time.Now(), p.within, 0)
		}
		p.look(time.Now(), r.withheld())
		r.place.busy(!p.withheld)
		if p.over(false) != nil {
			return fmt.Errorf("the operator does not begin within %v", p.within)
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-tick.C:
		}
	}
	// The next step follows at once.
	r.place.busy(true)
	return nil
}

// mayBeAccepted reports whether a write was accepted, or that nobody waits for its answer any more.
// The write of an operator that was stopped may have been committed. Then the next operator
// has nothing left to begin with.
func (r *run) mayBeAccepted(w fault.Write) bool {
	return w.Accepted() || w.Code == 0 && r.gate.InFlight() == 0
}

// activity changes with everything that happens.
func (r *run) activity() int { return r.gate.Written() + r.Recorder.Count(r.namespace) }

// isAs reports whether everything is as wanted, and status true.
func (r *run) isAs(want map[string]any) bool {
	return (want == nil || reflect.DeepEqual(want, r.Recorder.State(r.namespace))) && r.truthful() == nil
}

// differs says why the cluster has not reached a steady state in the wanted state.
func (r *run) differs(want map[string]any, late error) error {
	state := r.Recorder.State(r.namespace)
	if err := r.player.Err(); err != nil {
		late = fmt.Errorf("%w (the stand-in for the cluster: %w)", late, err)
	}
	switch err := r.truthful(); {
	case want != nil && !reflect.DeepEqual(want, state):
		return fmt.Errorf("%w: another end (-without +with the fault):\n%s", late, cmp.Diff(want, state))
	case err != nil:
		return fmt.Errorf("%w: %w", late, err)
	default:
		return late
	}
}

// truthful checks the conditions of every object that has some.
func (r *run) truthful() error {
	latest := map[string]Version{}
	for _, version := range r.Recorder.History(r.namespace) {
		latest[version.Object] = version
	}
	for name, version := range latest {
		if version.Deleted {
			continue
		}
		object := &unstructured.Unstructured{Object: version.Fields}
		err := truth.CheckGatewayAPIAtRest(object)
		if declared := Declared(object); declared != nil {
			err = truth.CheckAtRest(declared)
		}
		if err != nil {
			return fmt.Errorf("the status of %s is not true: %w", name, err)
		}
	}
	return nil
}

// staysQuiet waits and tells what is written though everything is done.
func (r *run) staysQuiet() error {
	end, before, seen := time.Now(), r.gate.Written(), r.Recorder.Count(r.namespace)
	timer := time.NewTimer(quietAfterwards)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	if writes := r.gate.Writes(); len(writes) > before {
		return late(end, writes, before, r.Recorder.History(r.namespace), seen)
	}
	return nil
}

// triesAtTheEnd is how often an object of a namespace that is being deleted may be tried
// in the time of staysQuiet, which is that of the pause between two such tries.
const triesAtTheEnd = 2

// givesUp waits as long as staysQuiet and tells of an object that is tried again and
// again.
func (r *run) givesUp() error {
	before := r.gate.Written()
	_ = r.staysQuiet()
	return givenUp(r.gate.Writes()[before:])
}

// givenUp finds in the writes of such a time what is tried again and again. The operator sees each status that it has written, and
// tries once more then.
func givenUp(writes []fault.Write) error {
	accepted, _ := countWrites(writes)
	reported := 0
	for target, n := range accepted {
		if strings.HasSuffix(target, "/status") {
			reported += n
		}
	}
	return errors.Join(checkWrites(nil, writes, triesAtTheEnd, reported)...)
}
