//go:build apitest

package status_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// fixture is a WebApp and a Writer for it.
type fixture struct {
	*testing.T
	app      *slipwayv1alpha1.WebApp
	recorder *recorder
	clock    *clocktesting.FakePassiveClock
	writer   *status.Writer
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{
		T: t,
		app: &slipwayv1alpha1.WebApp{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: env.Namespace(t)},
			Spec:       slipwayv1alpha1.WebAppSpec{Image: "shop:1", Port: 8080},
		},
		recorder: &recorder{},
		clock:    clocktesting.NewFakePassiveClock(time.Now()),
	}
	if err := env.Client.Create(t.Context(), f.app); err != nil {
		t.Fatal(err)
	}
	f.writer = status.NewWriter(env.Client, apply.NewFreshness(env.Client, env.Client), f.recorder, f.clock, news)
	return f
}

// write writes so many replicas and a Ready condition, from app as it is known.
func (f *fixture) write(app *slipwayv1alpha1.WebApp, replicas int32, ready metav1.Condition, onlyDetails bool, children ...client.Object) (bool, time.Duration, error) {
	before := app.DeepCopy()
	app.Status.Replicas = replicas
	app.Status.Conditions = status.Merge(before.Status.Conditions, []metav1.Condition{ready}, app.Generation, metav1.NewTime(f.clock.Now()))
	return f.writer.Write(f.Context(), before, app, onlyDetails, children...)
}

// stored is what the API server has.
func (f *fixture) stored() *slipwayv1alpha1.WebApp {
	f.Helper()
	app := &slipwayv1alpha1.WebApp{}
	if err := env.Client.Get(f.Context(), client.ObjectKeyFromObject(f.app), app); err != nil {
		f.Fatal(err)
	}
	return app
}

func TestDetailsAreWrittenOnceASecondAndTheRestAtOnce(t *testing.T) {
	f := newFixture(t)
	starting := status.False("Ready", "RolloutInProgress", "starting")
	ready := status.True("Ready", "Ready", "all is well")
	steps := []struct {
		name        string
		passed      time.Duration
		replicas    int32
		ready       metav1.Condition
		onlyDetails bool
		written     bool
		wait        time.Duration
	}{
		{"details, the first status of all", 0, 1, starting, true, true, 0},
		{"details at the same moment", 0, 2, starting, true, false, time.Second},
		{"details a little later", 300 * time.Millisecond, 2, starting, true, false, 700 * time.Millisecond},
		{"more than details", 0, 2, ready, false, true, 0},
		{"details again", 999 * time.Millisecond, 3, ready, true, false, time.Millisecond},
		{"details after a second", time.Millisecond, 3, ready, true, true, 0},
	}
	for _, step := range steps {
		f.clock.SetTime(f.clock.Now().Add(step.passed))
		written, wait, err := f.write(f.stored(), step.replicas, step.ready, step.onlyDetails)
		if err != nil || written != step.written || wait != step.wait {
			t.Errorf("%s: written %v, wait %v, error %v; want %v, %v", step.name, written, wait, err, step.written, step.wait)
		}
		if got := f.stored().Status.Replicas == step.replicas; got != step.written {
			t.Errorf("%s: stored: %v, want %v", step.name, got, step.written)
		}
	}
	if len(f.recorder.reported) != 1 {
		t.Errorf("events %q, want one, of becoming ready", f.recorder.reported)
	}
}

func TestAStatusThatMayBeUntrueIsNotWritten(t *testing.T) {
	ready := status.True("Ready", "Ready", "all is well")
	tests := map[string]struct {
		app    func(*fixture) *slipwayv1alpha1.WebApp
		child  client.Object
		policy bool
	}{
		"of a spec that is not there any more": {
			app: func(f *fixture) *slipwayv1alpha1.WebApp {
				// The object has been seen as it is, so nothing but the lock is in the way.
				if _, _, err := f.write(f.stored(), 1, status.False("Ready", "A", "a"), false); err != nil {
					f.Fatal(err)
				}
				stale, changed := f.stored(), f.stored()
				changed.Spec.Image = "shop:2"
				if err := env.Client.Update(f.Context(), changed); err != nil {
					f.Fatal(err)
				}
				return stale
			},
			policy: true,
		},
		"of a child that is another one by now": {
			app:    (*fixture).stored,
			child:  &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gone", ResourceVersion: "1"}},
			policy: true,
		},
		"of an object that is gone": {
			app: func(f *fixture) *slipwayv1alpha1.WebApp {
				app := f.stored()
				if _, _, err := f.write(f.stored(), 1, status.False("Ready", "A", "a"), false); err != nil {
					f.Fatal(err)
				}
				if err := env.Client.Delete(f.Context(), app); err != nil {
					f.Fatal(err)
				}
				return app
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			app := tc.app(f)
			var children []client.Object
			if tc.child != nil {
				tc.child.SetNamespace(app.Namespace)
				children = append(children, tc.child)
			}
			written, _, err := f.write(app, 7, ready, false, children...)
			policy := &outcome.Error{}
			if written || errors.As(err, &policy) != tc.policy || len(f.recorder.reported) > 0 {
				t.Errorf("written %v, error %v, events %q", written, err, f.recorder.reported)
			}
		})
	}
}

// reads counts what is read live.
type reads struct {
	client.Reader
	count int
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	r.count++
	return r.Reader.Get(ctx, key, into, options...)
}

// What is made or changed after the first status that an operator writes of a kind is not
// compared with the API server.
func TestOneObjectOfAKindIsComparedLiveAndLaterOnesAreNot(t *testing.T) {
	live := &reads{Reader: env.Client}
	fresh := apply.NewFreshness(env.Client, live)
	for i, want := range []int{1, 0, 0} {
		f := newFixture(t)
		f.writer = status.NewWriter(env.Client, fresh, f.recorder, f.clock, news)
		live.count = 0
		written, _, err := f.write(f.app, 1, status.True("Ready", "Ready", "all is well"), false)
		if !written || err != nil || live.count != want {
			t.Errorf("status %d: written %t, %v after %d live reads, want %d", i, written, err, live.count, want)
		}
	}
}
