package app

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// A rollback leads to the pods of the revision and keeps the fields that are not part of a
// revision. After it, another rollback has nothing to do.
func FuzzRollback(f *testing.F) {
	generate.Seed(f, 40)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		app := generate.WebApp(source)
		hash := generate.Pick(source, "", "c0ffee")
		good := revision{Number: 3, Name: "shop-good", Revision: desired.RevisionOf(generate.Spec(source), hash)}
		before, stored := app.DeepCopy(), *good.Spec.DeepCopy()
		if _, err := chooseRevision(app, []revision{good}, ""); err == nil {
			if _, err := planRollback(app, []revision{good}, "", hash); err != nil {
				t.Errorf("the revision before this one: %v", err)
			}
		}

		plan, err := planRollback(app, []revision{good}, "3", hash)
		if diff := cmp.Diff(before, app) + cmp.Diff(stored, good.Spec); diff != "" {
			t.Fatalf("the inputs were changed (-before +after):\n%s", diff)
		}
		if err != nil {
			if changes := diffSpecs(app.Spec, mergeRevision(app.Spec, good)); len(changes) > 0 {
				t.Errorf("%v, though it would change %v", err, changes)
			}
			return
		}
		after := patched(t, app.Spec, plan)
		if !equality.Semantic.DeepEqual(plan.Spec, after) {
			t.Errorf("the patch leads to something else (-want +got):\n%s", cmp.Diff(plan.Spec, after))
		}
		checkMerged(t, app.Spec, good.Spec, after)
		app.Spec = after
		if again, err := planRollback(app, []revision{good}, "3", hash); err == nil {
			t.Errorf("done, and there is more to do: %+v", again.Changes)
		}
	})
}

// patched applies a rollback's patch as RFC 7396 defines it.
func patched(t *testing.T, spec slipwayv1alpha1.WebAppSpec, plan *RollbackPlan) slipwayv1alpha1.WebAppSpec {
	t.Helper()
	patch, err := rollbackPatch(spec, plan.Spec, "7")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	var document, change map[string]any
	if err := errors.Join(json.Unmarshal(raw, &document), json.Unmarshal(patch, &change)); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(merge(document, change)); err != nil {
		t.Fatal(err)
	}
	after := slipwayv1alpha1.WebApp{}
	if err := json.Unmarshal(raw, &after); err != nil || after.ResourceVersion != "7" {
		t.Fatalf("%v: %s", err, raw)
	}
	return after.Spec
}

func merge(document, patch any) any {
	change, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := document.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, value := range change {
		if value == nil {
			delete(object, name)
			continue
		}
		object[name] = merge(object[name], value)
	}
	return object
}

// checkMerged checks from which spec each field was taken.
func checkMerged(t *testing.T, spec, good, after slipwayv1alpha1.WebAppSpec) {
	t.Helper()
	was, stored, is := reflect.ValueOf(spec), reflect.ValueOf(good), reflect.ValueOf(after)
	for i := range was.NumField() {
		field := was.Type().Field(i).Name
		want := stored.Field(i)
		switch field {
		case "Replicas", "Autoscaling", "Rollout", "Paused":
			want = was.Field(i)
		case "Storage":
			continue // Everything except its path, which may only change when both have a path.
		}
		if !equality.Semantic.DeepEqual(want.Interface(), is.Field(i).Interface()) {
			t.Errorf("%s is %+v, want %+v", field, is.Field(i), want)
		}
	}
	switch {
	case (spec.Storage == nil) != (after.Storage == nil):
		t.Errorf("the volume comes or goes: %+v", after.Storage)
	case spec.Storage != nil && after.Storage.Size.Cmp(spec.Storage.Size) != 0:
		t.Errorf("the volume is resized: %+v", after.Storage)
	case spec.Storage != nil && good.Storage != nil && after.Storage.MountPath != good.Storage.MountPath:
		t.Errorf("the volume is mounted at %s", after.Storage.MountPath)
	}
}

// A spec does not differ from itself. The difference of b and a is the reverse of the
// difference of a and b.
func FuzzDiff(f *testing.F) {
	generate.Seed(f, 40)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		a, b := generate.Spec(source), generate.Spec(source)
		if same := diffSpecs(a, *a.DeepCopy()); len(same) > 0 {
			t.Errorf("the same spec differs in %v", same)
		}
		there, back := diffSpecs(a, b), diffSpecs(b, a)
		for i := range back {
			back[i].From, back[i].To = back[i].To, back[i].From
		}
		if diff := cmp.Diff(there, back); diff != "" {
			t.Errorf("there and back (-there +back):\n%s", diff)
		}
		if app := clitest.ReadyApp(); len(there) == 0 && !samePods(app, a, b) {
			t.Error("other pods, and nothing differs")
		}
		for _, c := range there {
			checkValue(t, c.From.String())
			checkValue(t, c.To.String())
		}
	})
}

// checkValue checks that a value fits on a line and has no terminal control characters.
func checkValue(t *testing.T, text string) {
	t.Helper()
	if len([]rune(text)) > 83 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("printed as %q", text)
	}
}
