// Package finalizer holds an object until what is outside the cluster, or outside its namespace, has been undone. It never
// holds one for ever: the time is bounded, and a user can let it go by an annotation.
//
// A finalizer is only for what owner references cannot do. It is changed with a patch that names the version of the object,
// so that those of others are never lost: a patch of a stale cache is a conflict, and is tried again.
package finalizer

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// Finalizer is that of one kind.
type Finalizer struct {
	// Client writes.
	Client client.Client
	// Name is what the finalizer is called, for example slipway.dev/backup.
	Name string
	// LetGo is an annotation by which a user gives up what cannot be undone. Any value but "false" lets go.
	LetGo string
	// Limit is how long undoing may take. After that the object goes, whatever is left: a namespace that is being deleted
	// must not hang because a bucket cannot be reached. Required.
	Limit time.Duration
}

// Has reports whether an object is held.
func (f Finalizer) Has(object client.Object) bool {
	return slices.Contains(object.GetFinalizers(), f.Name)
}

// Add holds an object. It must come before anything is made that has to be undone. An object that is being deleted cannot be
// held any more: that is an error, and nothing may be made for it.
func (f Finalizer) Add(ctx context.Context, object client.Object) error {
	switch {
	case f.Has(object):
		return nil
	case !object.GetDeletionTimestamp().IsZero():
		return outcome.StaleCache(f.subject(object))
	}
	return f.set(ctx, object, append(slices.Clone(object.GetFinalizers()), f.Name))
}

// Remove holds an object no longer, because there is nothing to undo any more.
func (f Finalizer) Remove(ctx context.Context, object client.Object) error {
	if !f.Has(object) {
		return nil
	}
	return f.set(ctx, object, f.without(object))
}

// without are the finalizers of others.
func (f Finalizer) without(object client.Object) []string {
	return slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(name string) bool { return name == f.Name })
}

// Why is why an object that is being deleted goes.
type Why string

// Why an object goes.
const (
	// Held: it does not go yet, because undoing it goes on.
	Held Why = ""
	// Undone: there is nothing left to undo.
	Undone Why = "Undone"
	// LetGo: a user has asked for it.
	LetGo Why = "LetGo"
	// OutOfTime: it took longer than the limit.
	OutOfTime Why = "OutOfTime"
)

// Finish undoes what an object that is being deleted has left, and lets the object go when that is done, when a user says so,
// or when the time is up. What undo is not able to do by then is left behind: Why tells, so that an event can say so. undo
// must be idempotent, and not block: it reports whether it has finished, and is called again.
//
// While the object is held recheck asks for another look at the end of the time. An error of undo is returned as long as
// the object is held. An object that is not held goes by itself.
func (f Finalizer) Finish(
	ctx context.Context, object client.Object, now time.Time, recheck *outcome.Recheck, undo func(context.Context) (done bool, err error),
) (Why, error) {
	if !f.Has(object) {
		return Undone, nil
	}
	why := f.mayGo(object, now)
	if why == Held {
		done, err := undo(ctx)
		if !done || err != nil {
			recheck.After(f.left(object, now))
			return Held, err
		}
		why = Undone
	}
	if err := f.set(ctx, object, f.without(object)); err != nil {
		return Held, err
	}
	return why, nil
}

// mayGo is why an object may go although nothing has been undone, or Held.
func (f Finalizer) mayGo(object client.Object, now time.Time) Why {
	value, asked := object.GetAnnotations()[f.LetGo]
	switch {
	case asked && value != "false":
		return LetGo
	case f.left(object, now) <= 0:
		return OutOfTime
	default:
		return Held
	}
}

// left is how long an object may still be held.
func (f Finalizer) left(object client.Object, now time.Time) time.Duration {
	return f.Limit - now.Sub(object.GetDeletionTimestamp().Time)
}

// set writes the finalizers of an object as it was seen. An object that has gone is no error.
func (f Finalizer) set(ctx context.Context, object client.Object, finalizers []string) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T cannot be copied", object)
	}
	object.SetFinalizers(finalizers)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := f.Client.Patch(ctx, object, patch)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && !before.GetDeletionTimestamp().IsZero():
		return nil
	default:
		object.SetFinalizers(before.GetFinalizers())
		return outcome.Classify(f.subject(object), err)
	}
}

func (f Finalizer) subject(object client.Object) string {
	return fmt.Sprintf("the finalizer %s of %q", f.Name, object.GetName())
}
