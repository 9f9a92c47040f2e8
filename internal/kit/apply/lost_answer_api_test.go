//go:build apitest

package apply_test

import (
	"context"
	"errors"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/apply"
)

// answering is a client whose writes get another answer than the API server's.
type answering struct {
	client.Client
	// made reports whether the API server gets them all the same.
	made bool
	err  error
}

func (c answering) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if c.made {
		if err := c.Client.Patch(ctx, object, patch, options...); err != nil {
			return err
		}
	}
	return c.err
}

func (c answering) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if c.made {
		if err := c.Client.Delete(ctx, object, options...); err != nil {
			return err
		}
	}
	return c.err
}

// If a write got no answer, nobody knows whether it was committed. The owner may then ask for
// what it asked for before, so that the stale cache shows nothing to write. Status must not
// report what the cache shows until the cache is current.
func TestAWriteWithoutAnAnswerKeepsStatusFromTrustingTheCache(t *testing.T) {
	update := func(f *fixture, cached *corev1.Service) error {
		_, err := f.apply(81, cached.DeepCopy())
		return err
	}
	remove := func(f *fixture, cached *corev1.Service) error {
		return f.applier.Delete(f.Context(), f.owner, cached.DeepCopy())
	}
	lost := io.ErrUnexpectedEOF
	internal := apierrors.NewInternalError(errors.New("out of order"))
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "shop", errors.New("quota"))
	tests := map[string]struct {
		write func(f *fixture, cached *corev1.Service) error
		made  bool
		err   error
		// stale reports whether status waits for the cache; reads is how many live reads that takes.
		stale bool
		reads int
	}{
		"an update that was made":          {update, true, lost, true, 2},
		"an update that was not made":      {update, false, lost, false, 2},
		"an update made in spite of a 500": {update, true, internal, true, 2},
		"an update that was refused":       {update, false, refused, false, 0},
		"a deletion that was made":         {remove, true, lost, true, 2},
		"a deletion that was refused":      {remove, false, refused, false, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			live := &reads{Reader: env.Client}
			f.begin(live)
			f.mustApply(80, &corev1.Service{}, apply.Created)
			cached := f.current()
			f.applier.Client = answering{Client: env.Client, made: tc.made, err: tc.err}

			if err := tc.write(f, cached); err == nil {
				t.Fatal("the write did not fail")
			}
			f.mustApply(80, cached.DeepCopy(), apply.Unchanged) // as the cache has it, all is well
			err := f.applier.Fresh.Confirm(t.Context(), f.owner, cached)
			if isStaleCache(err) != tc.stale || live.count != tc.reads {
				t.Errorf("before status: %v after %d live reads, want a stale cache: %t, after %d", err, live.count, tc.stale, tc.reads)
			}
			now := []client.Object{f.owner}
			if child := f.current(); child.UID != "" {
				now = append(now, child)
			}
			if err := f.applier.Fresh.Confirm(t.Context(), now...); err != nil {
				t.Errorf("when the cache has caught up: %v", err)
			}
		})
	}
}
