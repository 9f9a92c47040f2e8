package scenario

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/testing/ownership"
)

// Drift is one field of one child that somebody changes.
type Drift struct {
	// Object is kind and name.
	Object string
	// Field is its path.
	Field string
	// Refused is why nobody can change it, nil where it was changed.
	Refused error
	// Problem tells that it was not restored, or that something else was not as before.
	Problem error
}

// foreign marks what is not the operator's.
const foreign = "example.com/foreign"

// PlayDrift plays a scenario, adds a foreign label and annotation to every child, and
// then changes each field that the operator owns, one after the other. Each time
// everything has to become as it was, the foreign fields included.
func (b *Bench) PlayDrift(t testing.TB, kind Kind, s Scenario) ([]Drift, error) {
	t.Helper()
	r := b.begin(t, s, Trial{OwnWatches: true}, false)
	defer r.end()
	if _, err := r.play(nil); err != nil {
		return nil, err
	}
	children, err := r.children()
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		if err := r.addForeign(child); err != nil {
			return nil, err
		}
	}
	if err := r.settle(nil, 0); err != nil {
		return nil, err
	}
	want := r.Recorder.State(r.namespace)
	if children, err = r.children(); err != nil {
		return nil, err
	}
	var drifts []Drift
	for _, child := range children {
		fields, err := stated(kind, child)
		if err != nil {
			return nil, err
		}
		for _, path := range fields {
			drifts = append(drifts, r.drift(kind, child, path, want))
		}
	}
	if s.AfterDrift != nil {
		drifts = append(drifts, Drift{Object: "what is declared", Field: "after all changes", Problem: r.getsReady(s)})
	}
	return drifts, nil
}

// stated are the fields of a child that the operator owns and can know to have been changed.
func stated(kind Kind, child *unstructured.Unstructured) ([]fieldpath.Path, error) {
	var fields []fieldpath.Path
	for manager := range ownManagers(child) {
		leaves, err := ownership.Leaves(child, manager)
		if err != nil {
			return nil, err
		}
		fields = append(fields, leaves...)
	}
	return slices.DeleteFunc(fields, func(path fieldpath.Path) bool {
		return slices.Contains(kind.State[child.GetKind()], path.String())
	}), nil
}

// children are the objects in which an operator owns something beside status.
func (r *run) children() ([]*unstructured.Unstructured, error) {
	var children []*unstructured.Unstructured
	for name, state := range r.Recorder.State(r.namespace) {
		version, _ := state.(map[string]any)["apiVersion"].(string)
		child, err := r.read(version, name)
		if err != nil {
			return nil, err
		}
		if len(ownManagers(child)) > 0 {
			children = append(children, child)
		}
	}
	return children, nil
}

// ownManagers are the field managers of ours that own something of the object itself.
// What was handed over is somebody else's to change.
func ownManagers(object metav1.Object) map[string]bool {
	managers := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "slipway-") && !strings.HasSuffix(entry.Manager, apply.HandoverSuffix) &&
			entry.Subresource == "" {
			managers[entry.Manager] = true
		}
	}
	return managers
}

func (r *run) addForeign(child *unstructured.Unstructured) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"x"},"annotations":{%q:"x"}}}`, foreign, foreign)
	return r.Env.Client.Patch(r.Context(), child, client.RawPatch("application/merge-patch+json", patch), client.FieldOwner("somebody"))
}

// drift changes a field and waits until everything is as it was. Of a child that is made once, that field is not.
func (r *run) drift(kind Kind, child *unstructured.Unstructured, path fieldpath.Path, want map[string]any) Drift {
	d := Drift{Object: called(child.GetKind(), child), Field: path.String()}
	r.place.Take()
	defer r.place.Leave()
	start := time.Now()
	var changed int64
	// The simulated cluster may write at the same time.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		changed, err = r.change(child, path)
		return err
	})
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err):
		d.Refused = err
	case err != nil:
		d.Problem = err
	default:
		wait := r.restored
		if slices.Contains(kind.Once, child.GetKind()) {
			wait = r.leftAlone
		}
		if d.Problem = wait(d.Object, changed, want); d.Problem == nil {
			r.Times.Changed(r.Name()+" "+d.Object+" "+d.Field, time.Since(start))
		}
	}
	return d
}

// change changes a field, and returns the version that the object has by that.
func (r *run) change(child *unstructured.Unstructured, path fieldpath.Path) (int64, error) {
	changed := &unstructured.Unstructured{}
	changed.SetGroupVersionKind(child.GroupVersionKind())
	if err := r.Env.Client.Get(r.Context(), client.ObjectKeyFromObject(child), changed); err != nil {
		return 0, err
	}
	if !ownership.Change(changed.Object, path) {
		return 0, fmt.Errorf("there is no such field in %v", changed.Object)
	}
	if err := r.Env.Client.Update(r.Context(), changed, client.FieldOwner("hand")); err != nil {
		return 0, err
	}
	return strconv.ParseInt(changed.GetResourceVersion(), 10, 64)
}

// leftAlone waits until nothing happens any more. Nobody may have written to the changed object, and everything else is as it
// was. The change stays, so from then on it is wanted.
func (r *run) leftAlone(object string, changed int64, want map[string]any) error {
	if err := r.settle(nil, 0); err != nil {
		return err
	}
	if now := r.Recorder.Number(r.namespace, object); now != changed {
		return fmt.Errorf("it is at version %d, and was changed at %d: somebody else has written to it", now, changed)
	}
	rest := func(state map[string]any) map[string]any {
		left := maps.Clone(state)
		delete(left, object)
		return left
	}
	state := r.Recorder.State(r.namespace)
	if diff := cmp.Diff(rest(want), rest(state)); diff != "" {
		return fmt.Errorf("something else has changed (-before +now):\n%s", diff)
	}
	want[object] = state[object]
	return nil
}

// getsReady has the pods do what they are to do after all changes, and waits until what is declared is ready.
func (r *run) getsReady(s Scenario) error {
	r.player.Behave(s.AfterDrift)
	if err := r.settle(nil, 0); err != nil {
		return err
	}
	for _, step := range s.Steps {
		if (&unstructured.Unstructured{Object: step.Apply}).GroupVersionKind().Group != slipwayv1alpha1.GroupName {
			continue
		}
		object, err := r.placed(step.Apply)
		if err != nil {
			return err
		}
		if err := r.Env.Client.Get(r.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if conditions := Declared(object).GetConditions(); !meta.IsStatusConditionTrue(conditions, slipwayv1alpha1.ConditionReady) {
			return fmt.Errorf("%s %s is not ready: %+v", object.GetKind(), object.GetName(), conditions)
		}
	}
	return nil
}

// restored waits until the recorder has seen a later version of the changed object, and
// everything as it was.
func (r *run) restored(object string, changed int64, want map[string]any) error {
	deadline := time.NewTimer(SettleWithin)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		state := r.Recorder.State(r.namespace)
		if r.Recorder.Number(r.namespace, object) > changed && reflect.DeepEqual(want, state) {
			return nil
		}
		select {
		case <-deadline.C:
			return fmt.Errorf("not restored (-before +now):\n%s", cmp.Diff(want, state))
		case <-tick.C:
		}
	}
}
