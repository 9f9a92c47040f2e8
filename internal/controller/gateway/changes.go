package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// A Gateway may have thousands of routes, and a reconcile must not keep those waiting that change meanwhile.
const (
	// fewChanges are written one after the other. More are written routeWriters at a time.
	fewChanges   = 8
	routeWriters = 8
	// writeTime is how long a reconcile writes statuses of routes. The next one writes the rest.
	writeTime = time.Second
	// maxFailures is how many failures of a reconcile are told.
	maxFailures = 10
)

// change is a status of a route, or of a GatewayPolicy, that is to be written.
type change struct {
	before, after client.Object
}

// appendChange adds what is said of some parents of a route, if its status does not say so already.
func (r *Reconciler) appendChange(changes []change, object client.Object, ours owns, all []said) []change {
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

// writeChanges writes statuses of routes. When that takes too long, it returns an error that asks for another look.
func (r *Reconciler) writeChanges(ctx context.Context, changes []change) error {
	w := &writing{clock: r.kit.Clock, write: func(c change) error { return r.writeChange(ctx, c) }, changes: changes}
	return w.run()
}

// writing writes changes, and ends when it has taken too long. Many are written in any order: those that are refused again and
// again, because a tenant has made them so, do not stand before the others.
type writing struct {
	clock clock.PassiveClock
	write func(change) error

	mu      sync.Mutex
	begin   time.Time
	changes []change
	next    int
	errs    []error
	// away tells that the API server did not answer: it is asked no more.
	away bool
}

// run writes, and returns what went wrong.
func (w *writing) run() error {
	w.begin = w.clock.Now()
	if len(w.changes) <= fewChanges {
		w.work()
		return w.conclude()
	}
	rand.Shuffle(len(w.changes), func(i, j int) { w.changes[i], w.changes[j] = w.changes[j], w.changes[i] })
	var writers sync.WaitGroup
	for range routeWriters {
		writers.Go(w.work)
	}
	writers.Wait()
	return w.conclude()
}

// work writes changes until there are no more, the time is up, or the API server is away.
func (w *writing) work() {
	for {
		c, ok := w.take()
		if !ok {
			return
		}
		if err := w.write(c); err != nil {
			w.fail(err)
		}
	}
}

// take returns the next change to write.
func (w *writing) take() (change, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away || w.clock.Since(w.begin) >= writeTime || w.next == len(w.changes) {
		return change{}, false
	}
	w.next++
	return w.changes[w.next-1], true
}

// fail notes that a change could not be written.
func (w *writing) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.errs) < maxFailures {
		w.errs = append(w.errs, err)
	}
	answer := apierrors.APIStatus(nil)
	w.away = w.away || !errors.As(err, &answer)
}

// conclude returns what went wrong, and asks for another look if changes are left.
func (w *writing) conclude() error {
	if rest := len(w.changes) - w.next; rest > 0 && !w.away {
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
