package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// What is asked of every run.
const (
	// idle is how long nothing may be written for a step to be over.
	idle = 300 * time.Millisecond
	// soon is how soon a requeue must be due for a step to wait for it. A status that waits
	// for pods, or holds details back, is requeued after a second. A later requeue is for what
	// no watch reports, and writes nothing if nothing has changed.
	soon = 1100 * time.Millisecond
	// quietAfterwards is how long nothing may be written at the end.
	quietAfterwards = 5 * time.Second
	// stuck is after how long without any event a run no longer counts as busy: it waits for
	// its own pauses then, or for nothing.
	stuck = 3 * time.Second
	// referenceIdle is idle for the run that all others are compared with: nothing that
	// comes late may be missing in it.
	referenceIdle = 2 * time.Second
	// allowance is how many more writes of an object than without the fault are allowed, for
	// each write with an injected fault, and once where there was none. The write that was
	// lost or refused is tried again, and status may report that and take it back.
	allowance = 3
)

// Trial is something that goes wrong in a run. The zero value is a run in which nothing
// does.
type Trial struct {
	// Faults are injected at the operator's writes.
	Faults fault.Plan
	// Injected is used instead of Faults and AfterCrash. It says what goes wrong in single
	// stages, by their first step, from 0. Each fault comes when everything is in a steady
	// state again, as if nothing had gone wrong before.
	Injected map[int]InjectedFault
	// CrashAtStep crashes the operator right after that step was done, counted from 1; the
	// next one is started before anything else happens. Default: it does not.
	CrashAtStep int
	// CacheDelay is how the operator sees the cluster. Default: as it is.
	CacheDelay *fault.CacheDelay
	// AfterCrash is how an operator sees the cluster that is started after a crash, given
	// the resource version at the beginning of the step. Default: as it is.
	AfterCrash func(version string) *fault.CacheDelay
	// Operators is how many act at the same time. Default 1.
	Operators int
	// Plant puts a bug into the operator.
	Plant func(*environment.Options)
	// Access changes how the operator reaches the API server, in a namespace.
	Access func(config *rest.Config, namespace string)
	// Ends reports whether the run ends with the fault. Nothing is as without the fault afterwards,
	// but the operator has to reach a steady state.
	Ends bool
	// Withheld reports whether the operator can do nothing in a namespace at the moment, for
	// another reason than what CacheDelay and Faults do. Default: it can.
	Withheld func(namespace string) bool
	// Idle is how long the operator has to be idle for a step to be over. Default: the
	// bench's.
	Idle time.Duration
	// Live asks the API server, before a step is over, whether the recorder has seen
	// everything: for a trial that breaks the watches of all, or may be late for another
	// reason. It costs a list of every kind. Default: only a run without a reference asks.
	Live bool
	// OwnWatches reports whether the operator asks the API server itself for what it lists, watches
	// and discovers, as it does in a cluster. Default: it shares the bench's relay. The runs
	// that others are compared with do not share it, so that a bug in the relay is noticed.
	OwnWatches bool
}

// Bench plays scenarios.
type Bench struct {
	// Env is the API server.
	Env *environment.Environment
	// Recorder sees what happens.
	Recorder *Recorder
	// Relay shows operators what they would list and watch.
	Relay *fault.Relay
	// Places are for runs in which something is going on.
	Places *Places
	// Times are those that steps take.
	Times *Times
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
	// gateways answers for the pods of APIGateways.
	gateways *workload.Gateways
	// stopPlayer ends the player.
	stopPlayer context.CancelFunc
	operators  []*environment.Operator
	// queues are those of each of the operators, and views is what each was shown.
	queues []*queues
	views  []*shown
	// done is what the steps did to objects.
	done map[string]effect
	// newest is when the last object of a kind was made that a step has written to.
	newest map[string]time.Time
	// crashes is how many crashed operators were replaced.
	crashes int
	// number is that of the step, from 1, and version the resource version at its beginning.
	number  int
	version string
	delay   *fault.CacheDelay
	// stages are those that have begun.
	stages []stage
	// place is one of the Places, while something is going on.
	place *Place
	// urgent reports whether other runs may wait for the result of this one. It waits for no place,
	// and leaves fewer to the others.
	urgent bool
}

// takePlace takes a place for what begins.
func (r *run) takePlace() {
	if r.urgent {
		r.place.busy(true)
		return
	}
	r.place.Take()
}

// Play plays a scenario. With a reference it compares with that; without, the outcome
// is to be a reference. The error says everything that is not as it should be.
func (b *Bench) Play(t testing.TB, s Scenario, trial Trial, reference *Outcome) (*Outcome, error) {
	t.Helper()
	r := b.begin(t, s, trial, reference == nil)
	defer r.end()
	return r.play(reference)
}

// begin starts what a run needs, at once if it is urgent.
func (b *Bench) begin(t testing.TB, s Scenario, trial Trial, urgent bool) *run {
	t.Helper()
	r := &run{Bench: b, TB: t, scenario: s, trial: trial, delay: trial.CacheDelay, urgent: urgent, place: &Place{of: b.Places}}
	r.takePlace()
	// A test that ends early must not keep its place.
	t.Cleanup(r.place.Leave)
	r.namespace = b.Env.Namespace(t)
	r.makeElsewhere()
	r.observe()
	r.gate = fault.NewGate(trial.Faults)
	r.gate.Home = r.namespace
	r.actAsCluster(s.Pods)
	for range max(1, trial.Operators) {
		r.start()
	}
	return r
}

// observe has the recorder see what is compared for the kind of the scenario alone.
func (r *run) observe() {
	var kinds []schema.GroupVersionKind
	for _, reference := range r.scenario.ObservedHere {
		kinds = append(kinds, reference.GroupVersionKind())
	}
	r.Recorder.Observe(r.namespace, kinds)
}

// actAsCluster starts to play the controllers of Kubernetes and the kubelet.
func (r *run) actAsCluster(script map[string]workload.Behaviour) {
	var err error
	if r.gateways, err = workload.NewGateways(r.Recorder.Reader()); err != nil {
		r.Fatal(err)
	}
	r.gateways.Seen = func() int { return r.Recorder.Events(r.namespace) }
	r.gateways.Elsewhere = r.namespaces()[1:]
	r.player = workload.NewPlayer(r.Env.Client, r.Recorder.Reader(), r.gateways, r.namespace, script)
	r.player.Seen = func() int { return r.Recorder.Count(r.namespace) }
	ctx, cancel := context.WithCancel(r.Context())
	r.stopPlayer = cancel
	go r.player.Run(ctx)
}

// end stops what a run needed.
func (r *run) end() {
	r.place.Leave()
	for _, o := range r.operators {
		o.Stop(r)
	}
	r.stopPlayer()
	r.gateways.Close()
	r.Recorder.Forget(r.namespace)
	for _, namespace := range r.namespaces() {
		r.Relay.Forget(namespace)
	}
}

func (r *run) play(reference *Outcome) (*Outcome, error) {
	outcome := &Outcome{}
	var starts []time.Time
	var problems []error
	over := false
	for i, step := range r.scenario.Steps {
		if over && reference != nil {
			break
		}
		// One step more shows that the operator goes on; the others would tell nothing new.
		over = step.settles() && !r.trial.Ends && r.allInjected(i)
		var want map[string]any
		if reference != nil {
			want = reference.States[i]
		}
		r.takePlace()
		if r.scenario.Stage(i) == i {
			r.begins(i)
		}
		starts = append(starts, time.Now())
		err := r.step(i, want)
		if err != nil && r.trial.Ends && r.gate.Injected() > 0 {
			r.place.Leave()
			return outcome, r.givesUp()
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("step %d: %w; writes: %s", i+1, err, Writes(r.gate.Writes())),
				r.safe(reference, outcome, false))
			return outcome, errors.Join(problems...)
		}
		outcome.States = append(outcome.States, r.stateAfter(step))
		if reference == nil {
			problems = append(problems, stepError(i, r.shows(step)))
		}
		problems = append(problems, stepError(i, r.restsAfter(i)))
	}
	r.place.Leave()
	if reference != nil {
		problems = append(problems, r.staysQuiet())
	}
	outcome.Writes, outcome.Injected = r.gate.Writes(), r.injectedIn()
	problems = append(problems, r.safe(reference, outcome, true))
	outcome.Steps = stepsOf(outcome.Writes, starts)
	if r.delay != nil {
		outcome.Seen = r.delay.Seen()
	}
	outcome.Moved = moved(outcome, starts)
	if reference != nil {
		problems = append(problems, r.checkWrites(reference, outcome)...)
	}
	return outcome, errors.Join(problems...)
}

// stepError says in which step something went wrong, if it did.
func stepError(i int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("step %d: %w", i+1, err)
}

// allInjected reports whether, before the i-th step, every fault was injected or its stage is
// over.
func (r *run) allInjected(i int) bool {
	if r.trial.CrashAtStep > 0 {
		return i >= r.trial.CrashAtStep
	}
	if len(r.trial.Injected) > 0 {
		return r.scenario.Stage(i) > slices.Max(slices.Collect(maps.Keys(r.trial.Injected)))
	}
	return len(r.trial.Faults) > 0 && r.gate.Injected() >= r.trial.Faults.Count()
}

// step does the i-th step and waits until the cluster is at steady state, unless the next one follows
// at once.
func (r *run) step(i int, want map[string]any) error {
	step := r.scenario.Steps[i]
	r.number = i + 1
	if err := r.mark(); err != nil {
		return err
	}
	before := r.gate.Written()
	err := r.do(step)
	if r.scenario.Tolerant && (apierrors.IsNotFound(err) || apierrors.IsInvalid(err)) {
		err = nil
	}
	if err != nil {
		return err
	}
	within := step.Within.Duration
	if r.trial.CrashAtStep == r.number {
		r.gate.Crash()
		r.restart()
		if r.trial.AfterCrash == nil {
			// The new operator looks at everything there is.
			within = 0
		}
	}
	if step.Together {
		return nil
	}
	if step.Begun {
		return r.begun(before)
	}
	return r.settle(want, within)
}

// safe notes what was seen during the run, and finds what must never happen.
func (r *run) safe(reference, outcome *Outcome, ended bool) error {
	history := r.Recorder.History(r.namespace)
	outcome.ways, outcome.claims = waysOf(history), claimsOf(history)
	if reference == nil {
		return nil
	}
	return checkSafety(reference, outcome, history, ended, r.trial.Operators)
}

func (r *run) stateAfter(step Step) map[string]any {
	if !step.settles() {
		return nil
	}
	return r.Recorder.State(r.namespace)
}

func (r *run) start() {
	r.Helper()
	q, s := newQueues(clock.RealClock{}, len(r.scenario.Controllers)), &shown{}
	r.queues, r.views = append(r.queues, q), append(r.views, s)
	r.operators = append(r.operators, r.Env.StartOperatorWith(r, func(config *rest.Config, options *environment.Options) {
		options.NewQueue = q.make
		options.Namespaces = r.namespaces()
		options.Controllers = r.scenario.Controllers
		options.GatewayAdminPort = r.gateways.Port
		options.BackupHooks, options.BackupExec = true, workload.Containers{}
		switch {
		case !r.trial.OwnWatches:
			r.Relay.Wrap(config)
			options.NewCache = r.Relay.NewCache(r.delay)
		case r.delay != nil:
			options.NewCache = r.delay.NewCache
		}
		options.NewCache = r.ownObjects(s.newCache(options.NewCache))
		r.gate.Wrap(config)
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
	// Nothing costs more than the start of an operator.
	r.place.busy(true)
	r.operators[0].Stop(r)
	r.operators, r.queues, r.views = nil, nil, nil
	if r.trial.AfterCrash != nil {
		r.delay = r.trial.AfterCrash(r.version)
	}
	r.start()
	return true
}

// mark notes where the cluster is before a step, for who wants to see it so later.
func (r *run) mark() error {
	if r.trial.AfterCrash == nil {
		return nil
	}
	list := &corev1.NamespaceList{}
	if err := r.Env.Client.List(r.Context(), list, client.Limit(1)); err != nil {
		return err
	}
	r.version = list.ResourceVersion
	return nil
}
