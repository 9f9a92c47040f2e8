//go:build apitest

package apply_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// child is a ConfigMap with one value, as the cache has it.
func (f *fixture) child(name, value string) apply.Child {
	f.Helper()
	current := &corev1.ConfigMap{}
	if err := env.Client.Get(f.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: name}, current); client.IgnoreNotFound(err) != nil {
		f.Fatal(err)
	}
	var desired *corev1ac.ConfigMapApplyConfiguration
	if value != "" {
		desired = corev1ac.ConfigMap(name, f.owner.Namespace).WithData(map[string]string{"value": value}).
			WithOwnerReferences(metav1ac.OwnerReference().
				WithAPIVersion("slipway.dev/v1alpha1").WithKind("WebApp").WithName(f.owner.Name).WithUID(f.owner.UID).WithController(true))
	}
	return apply.Wanted(desired, current)
}

// values are those of the ConfigMaps that exist and are no one else's.
func (f *fixture) values(names ...string) map[string]string {
	f.Helper()
	values := map[string]string{}
	for _, name := range names {
		if current := f.child(name, "").Current.(*corev1.ConfigMap); current.UID != "" {
			values[name] = current.Data["value"]
		}
	}
	return values
}

func TestAListIsMadeTrueAndWhatItDoesNotWantIsDeleted(t *testing.T) {
	f := newFixture(t)
	all := func(a, b, c string) []apply.Child {
		return []apply.Child{f.child("a", a), f.child("b", b), f.child("c", c)}
	}
	for i, step := range []struct {
		a, b, c string
		want    map[string]string
	}{
		{"1", "1", "", map[string]string{"a": "1", "b": "1"}},
		{"2", "", "1", map[string]string{"a": "2", "c": "1"}},
		{"", "", "", map[string]string{}},
	} {
		drifted, err := f.applier.AnyDrifted(all(step.a, step.b, step.c)...)
		if err != nil || !drifted {
			t.Errorf("step %d: drifted before: %v, %v", i, drifted, err)
		}
		if err := f.applier.All(t.Context(), f.owner, all(step.a, step.b, step.c), nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, f.values("a", "b", "c")); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
		if drifted, err := f.applier.AnyDrifted(all(step.a, step.b, step.c)...); err != nil || drifted {
			t.Errorf("step %d: drifted afterwards: %v, %v", i, drifted, err)
		}
	}
}

func TestOneChildThatFailsDoesNotKeepTheOthersFromBeingMade(t *testing.T) {
	f := newFixture(t)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: f.owner.Namespace}, Data: map[string]string{"value": "theirs"}}
	environment.Eventually(t, func() error { return env.Client.Create(t.Context(), foreign) })
	children := []apply.Child{{Desired: f.child("a", "1").Desired, Current: &corev1.ConfigMap{}}, f.child("b", "1")}
	explained := errors.New("in other words")
	err := f.applier.All(t.Context(), f.owner, children, func(child apply.Child, err error) error {
		if *child.Desired.GetName() != "a" {
			t.Errorf("asked to explain %v of %q", err, *child.Desired.GetName())
		}
		return explained
	})
	if !errors.Is(err, explained) {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "theirs", "b": "1"}, f.values("a", "b")); diff != "" {
		t.Error(diff)
	}
}
