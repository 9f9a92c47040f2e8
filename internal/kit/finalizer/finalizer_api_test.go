//go:build apitest

package finalizer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/finalizer"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

const (
	name   = "slipway.dev/test"
	theirs = "example.com/hold"
	letGo  = "slipway.dev/let-go"
	limit  = 10 * time.Minute
)

func ours() finalizer.Finalizer {
	return finalizer.Finalizer{Client: env.Client, Name: name, LetGo: letGo, Limit: limit}
}

// create makes an object with finalizers, and deletes it if asked. Whatever holds it is taken away in the end.
func create(t *testing.T, deleted bool, finalizers ...string) *slipwayv1alpha1.WebApp {
	t.Helper()
	app := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: env.Namespace(t), Finalizers: finalizers},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: "shop:1", Port: 8080},
	}
	if err := env.Client.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		environment.Eventually(t, func() error {
			left := read(t, app)
			if left.UID == "" {
				return nil
			}
			left.Finalizers = nil
			return client.IgnoreNotFound(env.Client.Update(context.WithoutCancel(t.Context()), left))
		})
	})
	if deleted {
		if err := env.Client.Delete(t.Context(), app); err != nil {
			t.Fatal(err)
		}
		app = read(t, app)
	}
	return app
}

// read returns an object as the API server has it, with no UID if it has gone.
func read(t *testing.T, app *slipwayv1alpha1.WebApp) *slipwayv1alpha1.WebApp {
	t.Helper()
	found := &slipwayv1alpha1.WebApp{}
	if err := env.Client.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(app), found); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return found
}

func TestAnObjectIsHeldBesideTheFinalizersOfOthers(t *testing.T) {
	app := create(t, false, theirs)
	if err := ours().Add(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	held := read(t, app)
	if diff := cmp.Diff([]string{theirs, name}, held.Finalizers); diff != "" {
		t.Error(diff)
	}
	if err := ours().Add(t.Context(), app); err != nil {
		t.Error(err)
	}
	if again := read(t, app); again.ResourceVersion != held.ResourceVersion {
		t.Error("what is held is written again")
	}
}

// A stale cache does not show the finalizer that somebody else has just added.
func TestNobodysFinalizerIsLostToAStaleCache(t *testing.T) {
	for what, held := range map[string][]string{"add": nil, "remove": {name}} {
		t.Run(what, func(t *testing.T) {
			stale := create(t, what == "remove", append(held, "example.com/first")...)
			current := read(t, stale)
			current.Finalizers = append(current.Finalizers, theirs)
			if what == "remove" {
				// To an object that is being deleted no finalizer can be added: another field changes.
				current.Finalizers = stale.Finalizers
				current.Labels = map[string]string{"changed": "yes"}
			}
			if err := env.Client.Update(t.Context(), current); err != nil {
				t.Fatal(err)
			}
			var err error
			if what == "add" {
				err = ours().Add(t.Context(), stale)
			} else {
				recheck := outcome.Recheck(0)
				_, err = ours().Finish(t.Context(), stale, stale.DeletionTimestamp.Time, &recheck, func(context.Context) (bool, error) { return true, nil })
			}
			if err == nil || outcome.Worst(err) != nil {
				t.Errorf("the error is %v, want a conflict that nobody hears of", err)
			}
			if diff := cmp.Diff(current.Finalizers, read(t, stale).Finalizers); diff != "" {
				t.Error(diff)
			}
			if finalizer := ours(); finalizer.Has(stale) != (what == "remove") {
				t.Error("the object in hand shows what was not written")
			}
		})
	}
}

func TestWhatIsBeingDeletedCannotBeHeldAnyMore(t *testing.T) {
	app := create(t, true, theirs)
	if err := ours().Add(t.Context(), app); err == nil || outcome.Worst(err) != nil {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff([]string{theirs}, read(t, app).Finalizers); diff != "" {
		t.Error(diff)
	}
}

func TestAnObjectGoesWhenAllIsUndoneOrWhenItMust(t *testing.T) {
	unreachable := errors.New("the bucket cannot be reached")
	tests := map[string]struct {
		annotation string
		after      time.Duration
		done       bool
		err        error
		why        finalizer.Why
		undone     bool // undo was called
		recheck    time.Duration
	}{
		"all is undone":             {"", time.Second, true, nil, finalizer.Undone, true, 0},
		"it goes on":                {"", 4 * time.Minute, false, nil, finalizer.Held, true, 6 * time.Minute},
		"it fails":                  {"", 4 * time.Minute, false, unreachable, finalizer.Held, true, 6 * time.Minute},
		"it fails for too long":     {"", limit, false, unreachable, finalizer.OutOfTime, false, 0},
		"a user lets go":            {"yes", time.Second, false, unreachable, finalizer.LetGo, false, 0},
		"a user does not let it go": {"false", time.Second, false, nil, finalizer.Held, true, limit - time.Second},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			app := create(t, true, name)
			if tc.annotation != "" {
				app.Annotations = map[string]string{letGo: tc.annotation}
				if err := env.Client.Update(t.Context(), app); err != nil {
					t.Fatal(err)
				}
			}
			recheck, called := outcome.Recheck(0), false
			why, err := ours().Finish(t.Context(), app, app.DeletionTimestamp.Add(tc.after), &recheck, func(context.Context) (bool, error) {
				called = true
				return tc.done, tc.err
			})
			held := tc.why == finalizer.Held
			if why != tc.why || called != tc.undone || recheck.In() != tc.recheck || held && !errors.Is(err, tc.err) || !held && err != nil {
				t.Errorf("why %q, %v, undone %v, again after %v; want %q, %v, %v", why, err, called, recheck.In(), tc.why, tc.undone, tc.recheck)
			}
			if gone := read(t, app).UID == ""; gone == held {
				t.Errorf("gone: %v", gone)
			}
		})
	}
}

// Two operators may finish the same object, or somebody else may take the finalizer away.
func TestAnObjectThatHasGoneMeanwhileIsFinished(t *testing.T) {
	app := create(t, true, name)
	other := app.DeepCopy()
	other.Finalizers = nil
	if err := env.Client.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	recheck := outcome.Recheck(0)
	why, err := ours().Finish(t.Context(), app, app.DeletionTimestamp.Time, &recheck, func(context.Context) (bool, error) { return true, nil })
	if why != finalizer.Undone || err != nil || apierrors.IsNotFound(err) {
		t.Errorf("why %q, %v", why, err)
	}
}
