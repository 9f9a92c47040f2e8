//go:build apitest

package apply_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func isStaleCache(err error) bool {
	policy := &outcome.Error{}
	return errors.As(err, &policy) && policy.Kind == outcome.Quiet
}

// The operator that led before may have seen more than the cache shows. It has not seen what
// is newer than the first object of that kind that this one creates.
func TestAnObjectIsComparedLiveOnceUnlessItIsNew(t *testing.T) {
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
	gone := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "gone", Namespace: child.Namespace, UID: "gone", ResourceVersion: "1"}}

	live := &reads{Reader: env.Client}
	fresh := apply.NewFreshness(env.Client, live)
	created := func() client.Object {
		// Not the first one that this operator creates.
		var child *corev1.Service
		for range 2 {
			other := newFixture(t)
			other.applier.Fresh = fresh
			other.mustApply(80, &corev1.Service{}, apply.Created)
			child = other.current()
		}
		return child
	}
	edited := func() client.Object {
		f.edit(func(s *corev1.Service) { s.Labels["new"] = "again" })
		return f.current()
	}
	steps := []struct {
		name    string
		objects func() []client.Object
		stale   bool
		reads   int
	}{
		{"an owner as it was", func() []client.Object { return []client.Object{staleOwner, child} }, true, 1},
		{"an owner as it is", func() []client.Object { return []client.Object{f.owner} }, false, 1},
		{"the owner again", func() []client.Object { return []client.Object{f.owner} }, false, 0},
		{"a child as it was", func() []client.Object { return []client.Object{f.owner, staleChild} }, true, 1},
		{"a child that has gone", func() []client.Object { return []client.Object{f.owner, gone} }, true, 1},
		{"a child as it is", func() []client.Object { return []client.Object{f.owner, child} }, false, 1},
		{"the child again, as it was", func() []client.Object { return []client.Object{staleChild} }, false, 0},
		{"a child that is created now", func() []client.Object { return []client.Object{created()} }, false, 0},
		{"a child that is edited now", func() []client.Object { return []client.Object{edited()} }, false, 0},
		{"a child that has gone before", func() []client.Object { return []client.Object{gone} }, true, 1},
	}
	for _, step := range steps {
		objects := step.objects()
		live.count = 0
		if err := fresh.Confirm(t.Context(), objects...); isStaleCache(err) != step.stale || err != nil && !step.stale {
			t.Errorf("%s: %v", step.name, err)
		}
		if live.count != step.reads {
			t.Errorf("%s: %d live reads, want %d", step.name, live.count, step.reads)
		}
	}
}

// Each kind may be stored in an etcd of its own, with versions of its own. So a write of one
// kind proves nothing about another.
func TestAnObjectIsComparedLiveThoughAnotherKindWasWritten(t *testing.T) {
	for name, wrote := range map[string]func(*fixture){
		"the same etcd": func(f *fixture) { f.mustApply(80, &corev1.Service{}, apply.Created) },
		"another etcd": func(f *fixture) {
			f.applier.Fresh.Wrote(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: "2"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := newFixture(t)
			live := &reads{Reader: env.Client}
			fresh := first.begin(live)
			wrote(first)
			f := newFixture(t)
			stale := f.owner.DeepCopy()
			f.owner.Labels = map[string]string{"new": "yes"}
			if err := env.Client.Update(t.Context(), f.owner); err != nil {
				t.Fatal(err)
			}
			live.count = 0
			if err := fresh.Confirm(t.Context(), stale); !isStaleCache(err) || live.count != 1 {
				t.Errorf("as it was: %v after %d live reads, want a stale cache after 1", err, live.count)
			}
			if err := fresh.Confirm(t.Context(), f.owner); err != nil || live.count != 2 {
				t.Errorf("as it is: %v after %d live reads, want 2", err, live.count)
			}
		})
	}
}

// The answer to an apply that changes nothing has the version of the last write. That may have
// been a write of the operator that led before, which may have written other objects since.
func TestAnUpdateProvesNothingOfOthersOfItsKind(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	f.mustApply(80, &corev1.Service{}, apply.Created)
	cached := f.current()
	f.mustApply(81, f.current(), apply.Updated)
	other.mustApply(80, &corev1.Service{}, apply.Created)
	stale := other.current()
	other.edit(func(s *corev1.Service) { s.Labels["new"] = "yes" })

	live := &reads{Reader: env.Client}
	f.applier = &apply.Applier{Client: env.Client, Live: env.Client, FieldManager: f.applier.FieldManager}
	fresh := f.begin(live)
	f.mustApply(81, cached, apply.Updated)
	if err := fresh.Confirm(t.Context(), cached); err != nil || live.count != 0 {
		t.Errorf("what it has updated: %v after %d live reads, want 0", err, live.count)
	}
	if err := fresh.Confirm(t.Context(), stale); !isStaleCache(err) || live.count != 1 {
		t.Errorf("another one as it was: %v after %d live reads, want a stale cache after 1", err, live.count)
	}
}

func TestAnObjectInDoubtIsComparedLiveHoweverNewItIs(t *testing.T) {
	f := newFixture(t)
	live := &reads{Reader: env.Client}
	fresh := f.begin(live)
	f.mustApply(80, &corev1.Service{}, apply.Created)
	stale := f.current()
	f.edit(func(s *corev1.Service) { s.Labels["new"] = "yes" })
	live.count = 0
	fresh.Invalidate(stale, &corev1.Service{})
	if err := fresh.Confirm(t.Context(), stale); !isStaleCache(err) {
		t.Errorf("as it was: %v", err)
	}
	for range 2 {
		if err := fresh.Confirm(t.Context(), f.current()); err != nil {
			t.Errorf("as it is: %v", err)
		}
	}
	if live.count != 2 {
		t.Errorf("%d live reads, want 2", live.count)
	}
}

// begin lets an operator begin whose cache shows the owner as it is.
func (f *fixture) begin(live *reads) *apply.Freshness {
	f.Helper()
	f.applier.Fresh = apply.NewFreshness(env.Client, live)
	if err := f.applier.Fresh.Confirm(f.Context(), f.owner); err != nil {
		f.Fatal(err)
	}
	live.count = 0
	return f.applier.Fresh
}

// A stale cache shows a new operator an owner as it was created, without children. In fact it
// was edited since, and has children. The earlier spec must not undo the present one.
func TestAnOwnerAsItWasCreatesNothing(t *testing.T) {
	f := newFixture(t)
	asCreated := f.owner.DeepCopy()
	f.owner.Spec.Port = 8081
	if err := env.Client.Update(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	f.mustApply(81, &corev1.Service{}, apply.Created)

	f.owner = asCreated
	f.applier = &apply.Applier{
		Client: env.Client, Live: env.Client, FieldManager: f.applier.FieldManager,
		Fresh: apply.NewFreshness(env.Client, env.Client),
	}
	change, err := f.apply(80, &corev1.Service{})
	if change != apply.Unchanged || !isStaleCache(err) {
		t.Errorf("%s, %v; want nothing done for an owner that has been edited since", change, err)
	}
	if got := f.current().Spec.Ports[0].Port; got != 81 {
		t.Errorf("the port is %d, as an earlier spec said", got)
	}
}

// Each kind has a watch of its own: what the garbage collector does to a child may be seen
// before the end of its owner. The owner is looked at live before the child is
// recreated, or taken again, which costs a read.
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
				f.begin(live)
				f.mustApply(80, &corev1.Service{}, apply.Created)
				f.mustApply(80, f.current(), apply.Unchanged)
				if live.count != 0 {
					t.Errorf("creating it for the first time cost %d live reads", live.count)
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
				if isStaleCache(err) == owner.restores {
					t.Errorf("the error is %v", err)
				}
				if written := f.current().ResourceVersion != lost.ResourceVersion; written != owner.restores {
					t.Errorf("restored: %v", written)
				}
			})
		}
	}
}

// The owner is also read live before a child that is not wanted any more is deleted: an
// orphaned child is to stay.
func TestAnOrphanedChildIsDeletedForAnOwnerThatIsThere(t *testing.T) {
	for name, isGone := range map[string]bool{"there": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.begin(&reads{Reader: env.Client})
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
