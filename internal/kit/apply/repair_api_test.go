//go:build apitest

package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/apply"
)

// repairs has the applier tell of repairs, and returns what it told.
func (f *fixture) repairs() *[]string {
	reported := &[]string{}
	f.applier.Repaired = func(_ client.Object, what string) { *reported = append(*reported, what) }
	return reported
}

// forget makes the applier that of an operator that has just started.
func (f *fixture) forget() {
	before := f.applier
	f.applier = &apply.Applier{Client: before.Client, Live: before.Live, FieldManager: before.FieldManager, Repaired: before.Repaired}
}

func TestARepairNamesTheFieldsAndWhoChangedThem(t *testing.T) {
	retarget := func(s *corev1.Service) { s.Spec.Selector["app"] = "other" }
	unlabel := func(s *corev1.Service) { delete(s.Labels, "desired") }
	tests := map[string]struct {
		edit func(*corev1.Service)
		// started reports whether the operator has just been started.
		started bool
		want    []string
	}{
		"changed":                        {retarget, false, []string{`Service "shop": spec.selector was changed by "somebody"; restored`}},
		"removed":                        {unlabel, false, []string{`Service "shop": metadata.labels.desired was removed; restored`}},
		"both":                           {func(s *corev1.Service) { retarget(s); unlabel(s) }, false, []string{`Service "shop": metadata.labels.desired was removed; spec.selector was changed by "somebody"; restored`}},
		"a port":                         {func(s *corev1.Service) { s.Spec.Ports[0].Name, s.Spec.Ports[0].Port = "other", 9999 }, false, []string{`Service "shop": spec.ports[80/TCP] was removed; restored`}},
		"its name":                       {func(s *corev1.Service) { s.Spec.Ports[0].Name = "other" }, false, []string{`Service "shop": spec.ports[80/TCP].name was changed by "somebody"; restored`}},
		"something of somebody's own":    {func(s *corev1.Service) { s.Annotations = map[string]string{"their": "own"} }, false, nil},
		"all that says whose they are":   {func(s *corev1.Service) { s.ManagedFields = []metav1.ManagedFieldsEntry{{}} }, false, nil},
		"changed while nobody looked":    {retarget, true, []string{`Service "shop": spec.selector was changed by "somebody"; restored`}},
		"removed while nobody looked":    {unlabel, true, nil},
		"nothing, the operator restarts": {func(*corev1.Service) {}, true, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			reported := f.repairs()
			f.mustApply(80, &corev1.Service{}, apply.Created)
			f.edit(tc.edit)
			if tc.started {
				f.forget()
			}
			if _, err := f.apply(80, f.current()); err != nil {
				t.Fatal(err)
			}
			f.mustApply(80, f.current(), apply.Unchanged)
			if diff := cmp.Diff(tc.want, *reported, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// An object that differs because our desired state has changed is no drift. No operator reports
// a repair, not even one that has just started.
func TestAChangeOfWhatIsDesiredIsNoRepair(t *testing.T) {
	f := newFixture(t)
	reported := f.repairs()
	f.mustApply(80, &corev1.Service{}, apply.Created)
	f.mustApply(81, f.current(), apply.Updated)
	f.forget()
	f.mustApply(82, f.current(), apply.Updated)
	if len(*reported) > 0 {
		t.Errorf("told %q", *reported)
	}
}

func TestARepairOfManyFieldsIsBounded(t *testing.T) {
	f := newFixture(t)
	reported := f.repairs()
	labels := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		labels["example.com/"+name] = "1"
	}
	child := func() apply.Child {
		return apply.Child{Desired: f.desired(80).WithLabels(labels), Current: f.current()}
	}
	for range 2 {
		if _, err := f.applier.Apply(t.Context(), f.owner, child()); err != nil {
			t.Fatal(err)
		}
		patch := []byte(`{"metadata":{"labels":{"example.com/a":"2","example.com/b":"2","example.com/c":"2","example.com/d":"2","example.com/e":"2"}}}`)
		if err := env.Client.Patch(t.Context(), f.current(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-label")); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`Service "shop": metadata.labels[example.com/a], metadata.labels[example.com/b], metadata.labels[example.com/c] and 2 more were changed by "kubectl-label"; restored`}
	if diff := cmp.Diff(want, *reported); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
