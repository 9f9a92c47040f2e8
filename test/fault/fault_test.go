//go:build faulttest

// Package fault_test tries every scenario with every fault at every write.
package fault_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/truth"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// allowance is how many writes more than without the fault are fine: the one that was
// lost or refused is tried again, and status may tell of it and take it back.
const allowance = 6

// How long nothing may be written for the cluster to be at rest. The reference run,
// which all others are compared with, is given longer.
const (
	atRest       = 400 * time.Millisecond
	reallyAtRest = 3 * time.Second
)

// outcome is what a run leads to.
type outcome struct {
	// states are those after each step.
	states []map[string]any
	writes []fault.Write
	struck bool
}

func TestEveryFaultAtEveryWriteLeadsToTheSameEnd(t *testing.T) {
	for _, s := range readScenarios(t) {
		t.Run(s.Kind+"/"+s.Name, func(t *testing.T) {
			reference := (&run{T: t, scenario: s}).play(0, fault.Fault{}, nil)
			t.Logf("%d writes: %v", len(reference.writes), kinds(reference.writes))
			for at := 1; at <= len(reference.writes); at++ {
				for _, f := range fault.All() {
					t.Run(fmt.Sprintf("write %d/%s", at, f.Name), func(t *testing.T) {
						t.Parallel()
						// A run may need a status write less than the reference; then the last
						// fault has nothing to strike.
						got := (&run{T: t, scenario: s}).play(at, f, reference.states)
						if !got.struck && len(got.writes) >= at {
							t.Errorf("the fault did not happen in %d writes: %v", len(got.writes), kinds(got.writes))
						}
						if limit := len(reference.writes) + allowance; len(got.writes) > limit {
							t.Errorf("%d writes, at most %d are fine: %v", len(got.writes), limit, kinds(got.writes))
						}
					})
				}
			}
		})
	}
}

func kinds(writes []fault.Write) []string {
	var list []string
	for _, w := range writes {
		list = append(list, w.String())
	}
	return list
}

// run is a scenario in a namespace and with an operator of its own.
type run struct {
	*testing.T
	scenario  scenario
	namespace string
	gate      *fault.Gate
	operator  *environment.Operator
	crashed   <-chan struct{}
}

// play plays the scenario. After each step it waits for the state in want, or, without
// want, until the cluster is at rest.
func (r *run) play(at int, f fault.Fault, want []map[string]any) outcome {
	r.Helper()
	r.namespace = env.Namespace(r)
	r.gate = fault.NewGate(at, f)
	r.crashed = r.gate.Crashed()
	r.start()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go (&workload.Cluster{Client: env.Client}).Play(ctx, r.namespace, r.scenario.Pods)

	var states []map[string]any
	for i, step := range r.scenario.Steps {
		object := client.ApplyConfigurationFromUnstructured(step.object(r.namespace))
		if err := env.Client.Apply(r.Context(), object, client.FieldOwner("user"), client.ForceOwnership); err != nil {
			r.Fatal(err)
		}
		if want != nil {
			environment.Eventually(r, func() error { return r.differs(want[i]) })
			environment.Quiet(r, atRest, r.fingerprint)
		} else {
			environment.Eventually(r, r.truthful)
			environment.Quiet(r, reallyAtRest, r.fingerprint)
		}
		states = append(states, r.state())
		if want != nil {
			if diff := cmp.Diff(want[i], states[i]); diff != "" {
				r.Errorf("another end of step %d (-without +with the fault):\n%s", i+1, diff)
			}
		}
		if err := r.truthful(); err != nil {
			r.Error(err)
		}
	}
	r.operator.Stop(r)
	// The addresses of Services are few, and nothing else collects them.
	if err := env.Client.DeleteAllOf(r.Context(), &corev1.Service{}, client.InNamespace(r.namespace)); err != nil {
		r.Error(err)
	}
	return outcome{states: states, writes: r.gate.Writes(), struck: r.gate.Struck()}
}

func (r *run) start() {
	r.Helper()
	r.operator = env.StartOperator(r, func(config *rest.Config) { r.gate.Wrap(config) }, r.namespace)
}

// restart starts a new operator when the old one has crashed.
func (r *run) restart() {
	r.Helper()
	select {
	case <-r.crashed:
		r.crashed = nil
		r.operator.Stop(r)
		r.start()
	default:
	}
}

func (r *run) state() map[string]any {
	r.Helper()
	state, err := readState(r.Context(), env.Client, r.namespace)
	if err != nil {
		r.Fatal(err)
	}
	return state
}

func (r *run) differs(want map[string]any) error {
	r.Helper()
	r.restart()
	if diff := cmp.Diff(want, r.state()); diff != "" {
		return fmt.Errorf("another end (-without +with the fault):\n%s\nwrites: %v", diff, kinds(r.gate.Writes()))
	}
	return nil
}

// fingerprint changes with every write, of the operator as of the cluster.
func (r *run) fingerprint() string {
	r.Helper()
	r.restart()
	versions := fmt.Sprint(len(r.gate.Writes()))
	for _, app := range r.apps() {
		versions += "/" + app.ResourceVersion
	}
	return versions
}

func (r *run) apps() []slipwayv1alpha1.WebApp {
	r.Helper()
	apps := &slipwayv1alpha1.WebAppList{}
	if err := env.Client.List(r.Context(), apps, client.InNamespace(r.namespace)); err != nil {
		r.Fatal(err)
	}
	return apps.Items
}

// truthful checks the conditions of every declared object.
func (r *run) truthful() error {
	r.Helper()
	for _, app := range r.apps() {
		if app.Status.ObservedGeneration != app.Generation {
			return fmt.Errorf("status of %q speaks of generation %d of %d", app.Name, app.Status.ObservedGeneration, app.Generation)
		}
		if err := truth.Check(&app); err != nil {
			return fmt.Errorf("the status of %q is not true: %w", app.Name, err)
		}
	}
	return nil
}
