//go:build apitest

package apply_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// fixture is one namespace with an owner, whose child is a Service of the same name.
type fixture struct {
	*testing.T
	applier *apply.Applier
	owner   *slipwayv1alpha1.WebApp
}

func newFixture(t *testing.T) *fixture {
	owner := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: env.Namespace(t)},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: "shop:1", Port: 8080},
	}
	if err := env.Client.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	return &fixture{T: t, owner: owner, applier: &apply.Applier{
		Client: env.Client, Live: env.Client, FieldManager: "slipway-test",
	}}
}

func (f *fixture) desired(port int32) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service("shop", f.owner.Namespace).
		WithLabels(map[string]string{"desired": "yes"}).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion("slipway.dev/v1alpha1").WithKind("WebApp").WithName(f.owner.Name).WithUID(f.owner.UID).WithController(true)).
		WithSpec(corev1ac.ServiceSpec().
			WithSelector(map[string]string{"app": "shop"}).
			WithPorts(corev1ac.ServicePort().WithName("http").WithPort(port).WithProtocol(corev1.ProtocolTCP)))
}

// current reads the child as a cache would have it, or nothing.
func (f *fixture) current() *corev1.Service {
	f.Helper()
	service := &corev1.Service{}
	err := env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.owner.Namespace, Name: "shop"}, service)
	if client.IgnoreNotFound(err) != nil {
		f.Fatal(err)
	}
	return service
}

func (f *fixture) apply(port int32, current *corev1.Service) (apply.Change, error) {
	return f.applier.Apply(f.Context(), f.owner, apply.Child{Desired: f.desired(port), Current: current})
}

func (f *fixture) mustApply(port int32, current *corev1.Service, want apply.Change) {
	f.Helper()
	got, err := f.apply(port, current)
	if err != nil || got != want {
		f.Errorf("apply: %s, %v, want %s", got, err, want)
	}
}

// edit changes the child as somebody else.
func (f *fixture) edit(change func(*corev1.Service)) {
	f.Helper()
	service := f.current()
	change(service)
	if err := env.Client.Update(f.Context(), service, client.FieldOwner("somebody")); err != nil {
		f.Fatal(err)
	}
}

func TestApplyWritesOnlyWhatHasDrifted(t *testing.T) {
	f := newFixture(t)
	answer := &corev1.Service{}
	f.mustApply(80, answer, apply.Created)
	if answer.UID == "" || answer.Spec.ClusterIP == "" {
		t.Errorf("the answer is not the API server's: %+v", answer)
	}
	f.mustApply(80, f.current(), apply.Unchanged)

	// A restarted operator has nothing but the object.
	f.applier = &apply.Applier{Client: f.applier.Client, Live: f.applier.Live, FieldManager: f.applier.FieldManager}
	f.mustApply(80, f.current(), apply.Unchanged)
	f.mustApply(81, f.current(), apply.Updated)
	f.mustApply(81, f.current(), apply.Unchanged)
}

func TestDriftIsWhatSomebodyDidToAStatedField(t *testing.T) {
	tests := map[string]struct {
		edit func(*corev1.Service)
		want apply.Change
	}{
		"another value":       {func(s *corev1.Service) { s.Labels["desired"] = "no" }, apply.Updated},
		"taken away":          {func(s *corev1.Service) { delete(s.Labels, "desired") }, apply.Updated},
		"no owner any more":   {func(s *corev1.Service) { s.OwnerReferences = nil }, apply.Updated},
		"a label of theirs":   {func(s *corev1.Service) { s.Labels["theirs"] = "yes" }, apply.Unchanged},
		"a field not desired": {func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }, apply.Unchanged},
		"a port of theirs":    {func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "x", Port: 9}) }, apply.Unchanged},
		"a port of theirs first": {func(s *corev1.Service) {
			s.Spec.Ports = append([]corev1.ServicePort{{Name: "x", Port: 9}}, s.Spec.Ports...)
		}, apply.Unchanged},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.mustApply(80, &corev1.Service{}, apply.Created)
			f.edit(tc.edit)
			f.mustApply(80, f.current(), tc.want)
			f.mustApply(80, f.current(), apply.Unchanged)
			if got := f.current(); got.Labels["desired"] != "yes" || !metav1.IsControlledBy(got, f.owner) {
				t.Errorf("not restored: %+v", got.ObjectMeta)
			}
		})
	}
}

func TestItemsAreKeptInTheOrderInWhichTheyAreStated(t *testing.T) {
	f := newFixture(t)
	desired := f.desired(80)
	desired.Spec.WithPorts(corev1ac.ServicePort().WithName("admin").WithPort(81).WithProtocol(corev1.ProtocolTCP))
	applied := func() apply.Change {
		t.Helper()
		got, err := f.applier.Apply(t.Context(), f.owner, apply.Child{Desired: desired, Current: f.current()})
		if err != nil {
			t.Error(err)
		}
		return got
	}
	applied()
	f.edit(func(s *corev1.Service) { slices.Reverse(s.Spec.Ports) })
	if got := applied(); got != apply.Updated {
		t.Errorf("turned round: %s", got)
	}
	if ports := f.current().Spec.Ports; ports[0].Name != "http" || ports[1].Name != "admin" {
		t.Errorf("the order is %q, %q", ports[0].Name, ports[1].Name)
	}
	f.edit(func(s *corev1.Service) {
		s.Spec.Ports = slices.Insert(s.Spec.Ports, 1, corev1.ServicePort{Name: "x", Port: 9})
	})
	if got := applied(); got != apply.Unchanged {
		t.Errorf("with a port of theirs in between: %s", got)
	}
}

// The cache of the operator shows only objects with its label. An object that it does
// not show is looked for before it is made.
func TestAnObjectThatIsNotTheOwnersIsNeverTouched(t *testing.T) {
	other := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "other", UID: "other", Controller: new(bool)}}
	*other[0].Controller = true
	for name, owners := range map[string][]metav1.OwnerReference{"nobody's": nil, "another's": other} {
		for _, seen := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t)
				foreign := &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.owner.Namespace, OwnerReferences: owners},
					Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
				}
				if err := env.Client.Create(t.Context(), foreign); err != nil {
					t.Fatal(err)
				}
				before, current := f.current(), &corev1.Service{}
				if seen {
					current = f.current()
				}
				_, err := f.apply(80, current)
				refused := &outcome.Error{}
				if !errors.As(err, &refused) || refused.Kind != outcome.Blocked || refused.After == 0 || refused.Reason != slipwayv1alpha1.ReasonNameConflict {
					t.Errorf("the answer is %v", err)
				}
				if err := f.applier.Delete(t.Context(), f.owner, f.current()); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(before, f.current()); diff != "" {
					t.Errorf("the foreign object was changed (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// An object that the cache does not show because its label was removed is still ours.
func TestAnOwnObjectThatTheCacheDoesNotShowIsRepaired(t *testing.T) {
	f := newFixture(t)
	f.mustApply(80, &corev1.Service{}, apply.Created)
	f.edit(func(s *corev1.Service) { s.Labels = nil })
	f.mustApply(80, &corev1.Service{}, apply.Updated)
	if f.current().Labels["desired"] != "yes" {
		t.Error("the label is not back")
	}
}

// An apply creates what does not exist. An object that the cache still shows may be gone,
// together with its owner. An object that exists in its place may be somebody else's.
func TestAnUpdateIsOfTheObjectThatWasSeen(t *testing.T) {
	for name, replaced := range map[string]bool{"gone": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.mustApply(80, &corev1.Service{}, apply.Created)
			seen := f.current()
			if err := env.Client.Delete(t.Context(), seen.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			if replaced {
				foreign := &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.owner.Namespace},
					Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
				}
				if err := env.Client.Create(t.Context(), foreign); err != nil {
					t.Fatal(err)
				}
			}
			before := f.current()
			change, err := f.apply(81, seen.DeepCopy())
			if policy := (&outcome.Error{}); change != apply.Unchanged || !errors.As(err, &policy) || policy.Kind != outcome.Quiet {
				t.Errorf("updated: %s, %v", change, err)
			}
			handedOver := apply.Child{Desired: f.desired(81), Current: seen.DeepCopy()}
			err = f.applier.HandOver(t.Context(), f.owner, handedOver)
			if policy := (&outcome.Error{}); !errors.As(err, &policy) || policy.Kind != outcome.Quiet {
				t.Errorf("handed over: %v", err)
			}
			if diff := cmp.Diff(before, f.current()); diff != "" {
				t.Errorf("what is there now was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFieldIsHandedOverWithoutALapse(t *testing.T) {
	f := newFixture(t)
	f.mustApply(80, &corev1.Service{}, apply.Created)
	owns, err := f.applier.Owns(f.current(), "metadata", "labels", "desired")
	if err != nil || !owns {
		t.Fatalf("owns the label: %v, %v", owns, err)
	}
	keep := corev1ac.Service("shop", f.owner.Namespace).WithLabels(map[string]string{"desired": "yes"})
	if err := f.applier.HandOver(t.Context(), f.owner, apply.Child{Desired: keep, Current: f.current()}); err != nil {
		t.Fatal(err)
	}
	without := f.desired(80)
	without.Labels = nil
	if _, err := f.applier.Apply(t.Context(), f.owner, apply.Child{Desired: without, Current: f.current()}); err != nil {
		t.Fatal(err)
	}
	if got := f.current().Labels["desired"]; got != "yes" {
		t.Errorf("the label is %q", got)
	}
}

func TestDeleteDeletesTheVersionThatWasSeen(t *testing.T) {
	f := newFixture(t)
	f.mustApply(80, &corev1.Service{}, apply.Created)
	stale := f.current()
	stale.UID = "another"
	err := f.applier.Delete(t.Context(), f.owner, stale)
	if policy := (&outcome.Error{}); !errors.As(err, &policy) || policy.Kind != outcome.Quiet {
		t.Errorf("deleting an object that was replaced: %v", err)
	}
	if err := f.applier.Delete(t.Context(), f.owner, f.current()); err != nil {
		t.Fatal(err)
	}
	if f.current().UID != "" {
		t.Error("still there")
	}
	if err := f.applier.Delete(t.Context(), f.owner, &corev1.Service{}); err != nil {
		t.Error(err)
	}
}

// patches counts what is written.
type patches struct {
	client.Client
	count int
}

func (p *patches) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	p.count++
	return p.Client.Patch(ctx, object, patch, options...)
}

// A cache that is stale, or that does not show the object at all, costs one write, however
// often the object is reconciled.
func TestAnObjectThatTheCacheDoesNotShowIsNotWrittenAgainAndAgain(t *testing.T) {
	f := newFixture(t)
	f.mustApply(80, &corev1.Service{}, apply.Created)
	counter := &patches{Client: env.Client}
	f.applier = &apply.Applier{Client: counter, Live: env.Client, FieldManager: "slipway-test"}
	for range 3 {
		f.mustApply(80, &corev1.Service{}, apply.Unchanged)
	}
	if counter.count != 1 {
		t.Errorf("%d writes, want the first attempt alone", counter.count)
	}
	if err := env.Client.Delete(t.Context(), f.current()); err != nil {
		t.Fatal(err)
	}
	f.mustApply(80, &corev1.Service{}, apply.Created)
}
