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

// settle waits until the cluster is at rest, in the wanted state if there is one. within
// is how long it may take until anything happens.
func (r *run) settle(want map[string]any, within time.Duration) error {
	limit, rest := settleWithin+within, idle
	if want == nil {
		rest = max(referenceIdle, within)
	}
	rest = max(rest, r.trial.Idle)
	deadline := time.NewTimer(limit + r.trial.Slack)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	last, since, arrived := -1, start, false
	for {
		if r.restart() {
			// The new operator has not had its time yet.
			start, since = time.Now(), time.Now()
			deadline.Reset(limit + r.trial.Slack)
		}
		if now := r.activity(); now != last {
			last, since = now, time.Now()
			arrived = r.arrived(want)
		}
		if arrived && time.Since(since) >= rest && r.gate.InFlight() == 0 && r.player.Idle(r.Context()) {
			switch shown, err := r.shown(want); {
			case err != nil:
				return err
			case shown:
				r.noteSettled(since.Sub(start))
				return nil
			default:
				since = time.Now()
			}
		}
		select {
		case <-deadline.C:
			return r.differs(want, limit+r.trial.Slack)
		case <-r.Context().Done():
			return r.Context().Err()
		case <-tick.C:
		}
	}
}

// shown tells whether the witness has seen the namespace as it is. What all others are
// compared with must not be what a busy machine shows late; elsewhere only a trial that
// breaks watches pays for the question.
func (r *run) shown(want map[string]any) (bool, error) {
	if want != nil && !r.trial.Live {
		return true, nil
	}
	return r.Witness.UpToDate(r.Context(), r.Env.Client, r.namespace)
}

// begun waits until one of the operator's writes since then was accepted.
func (r *run) begun(since int) error {
	deadline := time.NewTimer(settleWithin + r.trial.Slack)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !slices.ContainsFunc(r.gate.Writes()[since:], fault.Write.Accepted) {
		r.restart()
		select {
		case <-deadline.C:
			return errors.New("the operator does not begin")
		case <-r.Context().Done():
			return r.Context().Err()
		case <-tick.C:
		}
	}
	return nil
}

// activity changes with everything that happens.
func (r *run) activity() int { return len(r.gate.Writes()) + r.Witness.Count(r.namespace) }

// arrived tells whether everything is as wanted, and status true.
func (r *run) arrived(want map[string]any) bool {
	return (want == nil || reflect.DeepEqual(want, r.Witness.State(r.namespace))) && r.truthful() == nil
}

// differs says why the cluster has not come to rest in the wanted state.
func (r *run) differs(want map[string]any, limit time.Duration) error {
	state := r.Witness.State(r.namespace)
	switch err := r.truthful(); {
	case want != nil && !reflect.DeepEqual(want, state):
		return fmt.Errorf("another end (-without +with the fault):\n%s", cmp.Diff(want, state))
	case err != nil:
		return err
	default:
		return fmt.Errorf("it does not come to rest within %v (the stand-in for the cluster: %w)", limit, r.player.Err())
	}
}

// truthful checks the conditions of every object that has some.
func (r *run) truthful() error {
	latest := map[string]Version{}
	for _, version := range r.Witness.History(r.namespace) {
		latest[version.Object] = version
	}
	for name, version := range latest {
		if version.Deleted {
			continue
		}
		declared := Declared(&unstructured.Unstructured{Object: version.Fields})
		if declared == nil {
			continue
		}
		if err := truth.CheckAtRest(declared); err != nil {
			return fmt.Errorf("the status of %s is not true: %w", name, err)
		}
	}
	return nil
}

// staysQuiet waits and tells what is written though everything is done.
func (r *run) staysQuiet() error {
	before := len(r.gate.Writes())
	timer := time.NewTimer(quietAfterwards)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	if writes := r.gate.Writes(); len(writes) > before {
		var sent []string
		for _, w := range writes[before:] {
			sent = append(sent, fmt.Sprintf("%s %s: %s", w.At.Format(time.StampMilli), w, w.Body))
		}
		return fmt.Errorf("%d writes after the end:\n%s", len(writes)-before, strings.Join(sent, "\n"))
	}
	return nil
}

// triesAtTheEnd is how often an object of a namespace that is being deleted may be tried
// in the time of staysQuiet, which is that of the pause between two such tries.
const triesAtTheEnd = 2

// givesUp waits as long as staysQuiet and tells of an object that is tried again and
// again.
func (r *run) givesUp() error {
	before := len(r.gate.Writes())
	_ = r.staysQuiet()
	return errors.Join(checkWrites(nil, r.gate.Writes()[before:], triesAtTheEnd, 0)...)
}
