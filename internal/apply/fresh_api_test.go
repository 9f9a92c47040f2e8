//go:build apitest

package apply_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/apply"
	"github.com/slipway-dev/slipway/internal/outcome"
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

func TestAnOwnerThatIsTrustedIsNotLookedAt(t *testing.T) {
	f := newFixture(t)
	live := &reads{Reader: env.Client}
	fresh := apply.NewFreshness(env.Client, live)
	fresh.Trust(f.owner)
	if err := fresh.ConfirmAll(t.Context(), f.owner, &corev1.Service{}); err != nil || live.count != 0 {
		t.Errorf("%v after %d live reads", err, live.count)
	}
}
