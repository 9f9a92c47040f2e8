package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// A Gateway may have thousands of routes and ListenerSets, and a reconcile must not keep those waiting that change meanwhile.
const (
	// fewWrites are made one after the other. More are made writers at a time.
	fewWrites = 8
	writers   = 8
	// writeTime is how long a reconcile makes writes, and writeTimeOfOne by how much that is longer for each one: with more objects,
	// also what comes before the writes takes longer. maxWriteTime bounds it, well below the timeout of a reconcile. The next
	// reconcile makes the rest.
	writeTime      = time.Second
	writeTimeOfOne = 250 * time.Microsecond
	maxWriteTime   = 10 * time.Second
	// maxFailures is how many failures of a reconcile are reported.
	maxFailures = 10
)

// change is a status of a route or a policy that is to be written.
type change struct {
	before, after client.Object
}

// appendChange adds the statuses of some parents of a route, if its status does not have them already.
func (r *Reconciler) appendChange(changes []change, object client.Object, ours owns, all []parentStatus) []change {
	before := parentStatuses(object)
	next := entries(*before, object.GetNamespace(), ours, all, object.GetGeneration(), metav1.NewTime(r.kit.Clock.Now()))
	if len(next) == len(*before) && (len(next) == 0 || reflect.DeepEqual(next, *before)) {
		return changes
	}
	after, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return changes
	}
	*parentStatuses(after) = next
	return append(changes, change{before: object, after: after})
}

// writesOf are the writes that changes need.
func (r *Reconciler) writesOf(ctx context.Context, changes []change) []func() error {
	writes := make([]func() error, len(changes))
	for i, c := range changes {
		writes[i] = func() error { return r.writeChange(ctx, c) }
	}
	return writes
}

// writeAll makes writes. When that takes too long, it returns an error that asks for another look.
func (r *Reconciler) writeAll(writes []func() error) error {
	return (&writing{clock: r.kit.Clock, writes: writes}).run()
}

// writing makes writes, and ends when it has taken too long. Many are made in any order: those that are refused again and
// again, because a tenant has made them so, do not stand before the others.
type writing struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	end    time.Time
	writes []func() error
	next   int
	errs   []error
	// away reports whether the API server did not answer: it is asked no more.
	away bool
	// panicked is the panic of a write, with its stack. Empty: there was none.
	panicked string
}

// run writes, and returns what went wrong.
func (w *writing) run() error {
	w.end = w.clock.Now().Add(min(writeTime+time.Duration(len(w.writes))*writeTimeOfOne, maxWriteTime))
	if len(w.writes) <= fewWrites {
		w.work()
		return w.conclude()
	}
	rand.Shuffle(len(w.writes), func(i, j int) { w.writes[i], w.writes[j] = w.writes[j], w.writes[i] })
	var working sync.WaitGroup
	for range writers {
		working.Go(func() {
			defer w.handOver()
			w.work()
		})
	}
	working.Wait()
	if w.panicked != "" {
		panic(w.panicked) // on the goroutine of the reconcile, where it is caught and counted
	}
	return w.conclude()
}

// handOver keeps the panic of a write for the goroutine of the reconcile, and ends the writing. It must be deferred.
func (w *writing) handOver() {
	if cause := recover(); cause != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.away, w.panicked = true, fmt.Sprintf("%v\n%s", cause, debug.Stack())
	}
}

// work makes writes until there are no more, the time is up, or the API server is away.
func (w *writing) work() {
	for {
		write := w.take()
		if write == nil {
			return
		}
		if err := write(); err != nil {
			w.fail(err)
		}
	}
}

// take returns the next write, nil if there is none.
func (w *writing) take() func() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away || !w.clock.Now().Before(w.end) || w.next == len(w.writes) {
		return nil
	}
	w.next++
	return w.writes[w.next-1]
}

// fail notes that a write has failed.
func (w *writing) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.errs) < maxFailures {
		w.errs = append(w.errs, err)
	}
	answer := apierrors.APIStatus(nil)
	w.away = w.away || !errors.As(err, &answer)
}

// conclude returns what went wrong, and asks for another look if writes are left.
func (w *writing) conclude() error {
	if rest := len(w.writes) - w.next; rest > 0 && !w.away {
		again := &outcome.Error{Kind: outcome.Quiet, Message: fmt.Sprintf("%d statuses are not written yet", rest), After: time.Millisecond}
		w.errs = append(w.errs, again)
	}
	return errors.Join(w.errs...)
}

// writeChange writes one. The list of parents is one value that controllers share, so the write is locked.
func (r *Reconciler) writeChange(ctx context.Context, c change) error {
	in, err := r.kinds.objects.Client(c.after)
	if err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(c.before, client.MergeFromWithOptimisticLock{})
	return written(c.before, in.Status().Patch(ctx, c.after, patch, client.FieldOwner(FieldManager)))
}
