//go:build apitest

package apply_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// reads counts what is read live.
type reads struct {
	client.Reader
	count int
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	r.count++
	return r.Reader.Get(ctx, key, into, options...)
}

// What a cache shows counts once it has been seen to be what the API server has, the
// owner before its children, and is not asked for again.
func TestWhatACacheShowsIsComparedLiveOnce(t *testing.T) {
	f := newFixture(t)
	staleOwner := f.owner.DeepCopy()
	f.owner.Labels = map[string]string{"new": "yes"}
	if err := env.Client.Update(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	f.mustApply(80, &corev1.Service{}, apply.Created)
	staleChild := f.current()
	f.edit(func(s *corev1.Service) { s.Labels["new"] = "yes" })
	child := f.current()
	notShown := &corev1.Service{}
	notShown.Name, notShown.Namespace = child.Name, child.Namespace
	absent := &corev1.Service{}
	absent.Name, absent.Namespace = "absent", child.Namespace

	live := &reads{Reader: env.Client}
	fresh := apply.NewFreshness(env.Client, live)
	steps := []struct {
		name  string
		check func() error
		lags  bool
		reads int
	}{
		{"an owner as it was", func() error { return fresh.ConfirmAll(t.Context(), staleOwner, child) }, true, 1},
		{"an owner as it is", func() error { return fresh.Confirm(t.Context(), f.owner) }, false, 1},
		{"the owner again", func() error { return fresh.Confirm(t.Context(), f.owner) }, false, 0},
		{"a child as it was", func() error { return fresh.ConfirmAll(t.Context(), f.owner, absent, staleChild) }, true, 2},
		{"a child that the cache does not show", func() error { return fresh.ConfirmAll(t.Context(), f.owner, notShown) }, true, 1},
		{"a child as it is, and one that does not exist", func() error { return fresh.ConfirmAll(t.Context(), f.owner, child, absent) }, false, 2},
		{"the children again", func() error { return fresh.ConfirmAll(t.Context(), f.owner, staleChild) }, false, 0},
	}
	for _, step := range steps {
		live.count = 0
		err := step.check()
		if policy := (&outcome.Error{}); step.lags != errors.As(err, &policy) {
			t.Errorf("%s: %v", step.name, err)
		}
		if live.count != step.reads {
			t.Errorf("%s: %d live reads, want %d", step.name, live.count, step.reads)
		}
	}
}

// Each kind may lag for itself: what an owner is made true with is compared before the
// first write, too.
func TestWhatAnOwnerDependsOnIsComparedLiveBeforeTheFirstWrite(t *testing.T) {
	f := newFixture(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: f.owner.Namespace}}
	asCached := func(version string) client.Object {
		metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: f.owner.Namespace, ResourceVersion: version}}
		metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		return metadata
	}
	fresh := apply.NewFreshness(env.Client, env.Client)
	lags := func(version string) bool {
		fresh.DependsOn(f.owner, asCached(version))
		return fresh.Confirm(t.Context(), f.owner) != nil
	}
	if !lags("1") {
		t.Error("a Secret that has gone is taken for the one that is cached")
	}
	if err := env.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if !lags("") {
		t.Error("a Secret that is there is taken for missing")
	}
	if lags(secret.ResourceVersion) {
		t.Error("a Secret as it is is taken for another")
	}
	if lags("1") {
		t.Error("it is compared again")
	}
}

func TestAnOwnerThatIsTrustedIsNotLookedAt(t *testing.T) {
	f := newFixture(t)
	live := &reads{Reader: env.Client}
	fresh := apply.NewFreshness(env.Client, live)
	fresh.Trust(f.owner)
	if err := fresh.ConfirmAll(t.Context(), f.owner, &corev1.Service{}); err != nil || live.count != 0 {
		t.Errorf("%v after %d live reads", err, live.count)
	}
}

// An API server that lags shows a new operator an owner that has just been made, without
// children, though it has been edited and has some: what it asked for then must not undo
// what it asks for now.
func TestAChildThatTheCacheLacksInvalidatesOwner(t *testing.T) {
	f := newFixture(t)
	asMade := f.owner.DeepCopy()
	f.owner.Spec.Port = 8081
	if err := env.Client.Update(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	f.mustApply(81, &corev1.Service{}, apply.Created)

	f.owner = asMade
	f.applier = &apply.Applier{
		Client: env.Client, Live: env.Client, FieldManager: f.applier.FieldManager,
		Fresh: apply.NewFreshness(env.Client, env.Client),
	}
	f.applier.Fresh.Trust(f.owner)
	change, err := f.apply(80, &corev1.Service{})
	if policy := (&outcome.Error{}); change != apply.Unchanged || !errors.As(err, &policy) || policy.Kind != outcome.Quiet {
		t.Errorf("%s, %v; want nothing done for an owner that has been edited since", change, err)
	}
	if got := f.current().Spec.Ports[0].Port; got != 81 {
		t.Errorf("the port is %d, as an earlier spec said", got)
	}
}

// So does a Deployment that is looked for because its number of pods counts.
func TestAnAutoscaledDeploymentThatTheCacheLacksInvalidatesOwner(t *testing.T) {
	state := func(f *fixture, replicas int32) *appsv1ac.DeploymentApplyConfiguration {
		labels := map[string]string{"app": "shop"}
		return appsv1ac.Deployment("shop", f.owner.Namespace).
			WithOwnerReferences(&f.desired(80).OwnerReferences[0]).
			WithSpec(appsv1ac.DeploymentSpec().
				WithReplicas(replicas).
				WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
				WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).
					WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName("app").WithImage("shop:1")))))
	}
	tests := map[string]struct {
		exists bool
		reads  int
	}{
		"it exists":         {true, 1},
		"it does not exist": {false, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if tc.exists {
				if err := env.Client.Apply(t.Context(), state(f, 3), client.FieldOwner("somebody"), client.ForceOwnership); err != nil {
					t.Fatal(err)
				}
			}
			live := &reads{Reader: env.Client}
			f.applier.Fresh = apply.NewFreshness(env.Client, live)
			f.applier.Fresh.Trust(f.owner)
			_, err := f.applier.AutoscaledReplicas(t.Context(), f.owner, &appsv1.Deployment{}, 2,
				func(replicas int32) apply.Configuration { return state(f, replicas) })
			if err != nil {
				t.Fatal(err)
			}
			if err := f.applier.Fresh.Confirm(t.Context(), f.owner); err != nil || live.count != tc.reads {
				t.Errorf("%v after %d live reads of the owner, want %d", err, live.count, tc.reads)
			}
		})
	}
}

// Each kind has a watch of its own: what the garbage collector does to a child may be seen
// before the end of its owner. The owner is looked at live before the child is made, or
// taken, again, which costs a read.
func TestALostChildIsRestoredForAnOwnerThatIsThere(t *testing.T) {
	// What happens to the child, and to the owner unseen.
	children := map[string]struct {
		lose     func(*fixture) error
		restored apply.Change
	}{
		"deleted": {func(f *fixture) error { return env.Client.Delete(f.Context(), f.current()) }, apply.Created},
		"orphaned": {func(f *fixture) error {
			f.edit(func(s *corev1.Service) { s.OwnerReferences = nil })
			return nil
		}, apply.Updated},
	}
	owners := map[string]struct {
		meanwhile func(*fixture) error
		restores  bool
	}{
		"as it was": {func(*fixture) error { return nil }, true},
		"gone":      {func(f *fixture) error { return env.Client.Delete(f.Context(), f.owner) }, false},
		"edited": {func(f *fixture) error {
			edited := f.owner.DeepCopy()
			edited.Spec.Port = 8081
			return env.Client.Update(f.Context(), edited)
		}, false},
	}
	for state, child := range children {
		for name, owner := range owners {
			t.Run(state+", and the owner is "+name, func(t *testing.T) {
				f := newFixture(t)
				live := &reads{Reader: env.Client}
				f.applier.Fresh = apply.NewFreshness(env.Client, live)
				f.applier.Fresh.Trust(f.owner)
				f.mustApply(80, &corev1.Service{}, apply.Created)
				f.mustApply(80, f.current(), apply.Unchanged)
				if live.count != 0 {
					t.Errorf("making it for the first time cost %d live reads", live.count)
				}
				if err := errors.Join(child.lose(f), owner.meanwhile(f)); err != nil {
					t.Fatal(err)
				}
				lost, want := f.current(), apply.Unchanged
				if owner.restores {
					want = child.restored
				}
				change, err := f.apply(80, f.current())
				if change != want || live.count != 1 {
					t.Errorf("%s after %d live reads, want %s after 1", change, live.count, want)
				}
				policy := &outcome.Error{}
				if lags := errors.As(err, &policy) && policy.Kind == outcome.Quiet; lags == owner.restores {
					t.Errorf("the error is %v", err)
				}
				if written := f.current().ResourceVersion != lost.ResourceVersion; written != owner.restores {
					t.Errorf("restored: %v", written)
				}
			})
		}
	}
}

// The same where a child is not wanted any more: one that is orphaned is to stay.
func TestAnOrphanedChildIsDeletedForAnOwnerThatIsThere(t *testing.T) {
	for name, isGone := range map[string]bool{"there": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.applier.Fresh = apply.NewFreshness(env.Client, env.Client)
			f.applier.Fresh.Trust(f.owner)
			f.mustApply(80, &corev1.Service{}, apply.Created)
			f.edit(func(s *corev1.Service) { s.OwnerReferences = nil })
			if isGone {
				if err := env.Client.Delete(t.Context(), f.owner.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			err := f.applier.Delete(t.Context(), f.owner, f.current())
			if (err != nil) != isGone {
				t.Errorf("the error is %v", err)
			}
			if stayed := f.current().UID != ""; stayed != isGone {
				t.Errorf("stayed: %v", stayed)
			}
		})
	}
}
