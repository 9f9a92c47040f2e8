package scenario

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/truth"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// What is asked of every run.
const (
	// settleWithin is how long a run may take to its end state after the fault is over. On
	// a machine that does nothing else it is far less (docs/reliability.md says how much);
	// the rest is room for one that does.
	settleWithin = 30 * time.Second
	// idle is how long nothing may be written for a step to be over.
	idle = 300 * time.Millisecond
	// quietAfterwards is how long nothing may be written at the end.
	quietAfterwards = 5 * time.Second
	// referenceIdle is idle for the run that all others are compared with: nothing that
	// comes late may be missing in it.
	referenceIdle = 2 * time.Second
	// allowance is how many writes of an object more than without the fault are fine, for
	// each write that a fault struck and once besides: the one that was lost or refused is
	// tried again, and status may tell of it and take it back.
	allowance = 3
)

// Trial is something that goes wrong in a run. The zero value is a run in which nothing
// does.
type Trial struct {
	// Faults strike the operator's writes.
	Faults fault.Plan
	// Lens is how the operator sees the cluster. Default: as it is.
	Lens *fault.Lens
	// AfterCrash is how an operator sees the cluster that is started after a crash, given
	// the resource version at the beginning of the step. Default: as it is.
	AfterCrash func(version string) *fault.Lens
	// Operators is how many act at the same time. Default 1.
	Operators int
	// Plant puts a bug into the operator.
	Plant func(*operator.Options)
	// Access changes how the operator reaches the API server, in a namespace.
	Access func(config *rest.Config, namespace string)
	// Ends tells that the run ends with the fault: nothing is as without it afterwards,
	// but the operator has to come to rest.
	Ends bool
	// Allowance is how many writes of an object more are fine, where it is not the gate
	// that refuses them.
	Allowance int
	// Slack is how much longer than without the fault a step may take, and how long
	// the operator may be idle before it is over.
	Slack, Idle time.Duration
}

// Bench plays scenarios.
type Bench struct {
	// Env is the API server.
	Env *environment.Environment
	// Witness sees what happens.
	Witness *Witness

	mu      sync.Mutex
	settled []time.Duration
}

func (b *Bench) noteSettled(after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settled = append(b.settled, after)
}

// Settled says how long steps took, from what was done, or from the start of the new
// operator after a crash, to the last thing that happened.
func (b *Bench) Settled() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.settled) == 0 {
		return "no step"
	}
	slices.Sort(b.settled)
	share := func(percent int) time.Duration {
		return b.settled[(len(b.settled)-1)*percent/100].Round(time.Millisecond)
	}
	return fmt.Sprintf("%d steps came to rest after %v (median), %v (99 %%), %v (worst)", len(b.settled), share(50), share(99), share(100))
}

// run is a scenario that is being played.
type run struct {
	*Bench
	testing.TB
	scenario  Scenario
	trial     Trial
	namespace string
	gate      *fault.Gate
	player    *workload.Player
	// stopPlayer ends the player.
	stopPlayer context.CancelFunc
	operators  []*environment.Operator
	// crashes is how many crashed operators were replaced.
	crashes int
	// version is the resource version at the beginning of the step.
	version string
	lens    *fault.Lens
}

// Play plays a scenario. With a reference it compares with that; without, the outcome
// is to be a reference. The error says everything that is not as it should be.
func (b *Bench) Play(t testing.TB, s Scenario, trial Trial, reference *Outcome) (*Outcome, error) {
	t.Helper()
	r := b.begin(t, s, trial)
	outcome, err := r.play(reference)
	return outcome, errors.Join(err, r.end())
}

// begin starts what a run needs.
func (b *Bench) begin(t testing.TB, s Scenario, trial Trial) *run {
	t.Helper()
	r := &run{Bench: b, TB: t, scenario: s, trial: trial, namespace: b.Env.Namespace(t), lens: trial.Lens}
	r.gate = fault.NewGate(trial.Faults)
	r.actAsCluster(s.Pods)
	for range max(1, trial.Operators) {
		r.start()
	}
	return r
}

// actAsCluster starts to play the controllers of Kubernetes and the kubelet.
func (r *run) actAsCluster(script map[string]workload.Behaviour) {
	r.player = workload.NewPlayer(r.Env.Client, r.Witness.Reader(), r.namespace, script)
	ctx, cancel := context.WithCancel(r.Context())
	r.stopPlayer = cancel
	go r.player.Run(ctx)
}

// end stops what a run needed.
func (r *run) end() error {
	for _, o := range r.operators {
		o.Stop(r)
	}
	r.stopPlayer()
	return r.clear()
}

// clear makes room: the addresses of Services are few, and nothing else collects them.
func (r *run) clear() error {
	r.Witness.Forget(r.namespace)
	return r.Env.Client.DeleteAllOf(r.Context(), &corev1.Service{}, client.InNamespace(r.namespace))
}

func (r *run) play(reference *Outcome) (*Outcome, error) {
	outcome := &Outcome{}
	var starts []time.Time
	for i, step := range r.scenario.Steps {
		var want map[string]any
		if reference != nil {
			want = reference.States[i]
		}
		starts = append(starts, time.Now())
		err := r.step(step, want)
		if err != nil && r.trial.Ends && r.gate.Struck() > 0 {
			return outcome, r.givesUp()
		}
		if err != nil {
			return outcome, fmt.Errorf("step %d: %w; writes: %s", i+1, err, Writes(r.gate.Writes()))
		}
		outcome.States = append(outcome.States, r.stateAfter(step))
	}
	var problems []error
	if reference != nil {
		problems = append(problems, r.staysQuiet())
	}
	history := r.Witness.History(r.namespace)
	outcome.Writes, outcome.Struck = r.gate.Writes(), r.gate.Struck()
	outcome.ways, outcome.claims = waysOf(history), claimsOf(history)
	outcome.Steps = stepsOf(outcome.Writes, starts)
	outcome.Moved = moved(outcome, history, starts)
	if r.lens != nil {
		outcome.Seen = r.lens.Seen()
	}
	if reference != nil {
		problems = append(problems, checkWays(reference.ways, outcome.ways)...)
		problems = append(problems, checkClaims(reference, outcome)...)
		problems = append(problems, checkWrites(reference.Writes, outcome.Writes, r.trial.Allowance+allowance*max(1, outcome.Struck))...)
	}
	return outcome, errors.Join(problems...)
}

// step does a step and waits until the cluster is at rest, unless the next one follows
// at once.
func (r *run) step(step Step, want map[string]any) error {
	if err := r.mark(); err != nil {
		return err
	}
	err := r.do(step)
	if r.scenario.Tolerant && (apierrors.IsNotFound(err) || apierrors.IsInvalid(err)) {
		err = nil
	}
	if err != nil {
		return err
	}
	if step.Together {
		return nil
	}
	return r.settle(want, step.Within.Duration)
}

func (r *run) stateAfter(step Step) map[string]any {
	if step.Together {
		return nil
	}
	return r.Witness.State(r.namespace)
}

func (r *run) start() {
	r.Helper()
	r.operators = append(r.operators, r.Env.StartOperatorWith(r, func(config *rest.Config, options *operator.Options) {
		options.Namespaces = []string{r.namespace}
		r.gate.Wrap(config)
		if r.lens != nil {
			options.NewCache = r.lens.NewCache
		}
		if r.trial.Access != nil {
			r.trial.Access(config, r.namespace)
		}
		if r.trial.Plant != nil {
			r.trial.Plant(options)
		}
	}))
}

// restart starts a new operator when the old one has crashed, and tells so.
func (r *run) restart() bool {
	r.Helper()
	if r.gate.Crashes() == r.crashes {
		return false
	}
	r.crashes++
	r.operators[0].Stop(r)
	r.operators = nil
	if r.trial.AfterCrash != nil {
		r.lens = r.trial.AfterCrash(r.version)
	}
	r.start()
	return true
}

// mark notes where the cluster is before a step.
func (r *run) mark() error {
	list := &corev1.NamespaceList{}
	if err := r.Env.Client.List(r.Context(), list, client.Limit(1)); err != nil {
		return err
	}
	r.version = list.ResourceVersion
	return nil
}

func (r *run) do(step Step) error {
	switch {
	case step.Pods != nil:
		r.player.Behave(step.Pods)
		return nil
	case step.Delete != nil:
		return r.Env.Client.Delete(r.Context(), step.Delete.object(r.namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
	default:
		object := (&unstructured.Unstructured{Object: step.Apply}).DeepCopy()
		object.SetNamespace(r.namespace)
		return r.Env.Client.Apply(r.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(step.manager()), client.ForceOwnership)
	}
}

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
			start = time.Now()
			deadline.Reset(limit + r.trial.Slack)
		}
		if now := r.activity(); now != last {
			last, since = now, time.Now()
			arrived = r.arrived(want)
		}
		if arrived && time.Since(since) >= rest && r.gate.InFlight() == 0 && r.player.Idle(r.Context()) {
			r.noteSettled(since.Sub(start))
			return nil
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
		declared := conditioned(&unstructured.Unstructured{Object: version.Fields})
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
		return fmt.Errorf("%d writes after the end: %s", len(writes)-before, Writes(writes[before:]))
	}
	return nil
}

// givesUp waits as long as staysQuiet and tells of an object that is tried more often
// than a growing pause between tries explains.
func (r *run) givesUp() error {
	before := len(r.gate.Writes())
	_ = r.staysQuiet()
	return errors.Join(checkWrites(nil, r.gate.Writes()[before:], allowance)...)
}
