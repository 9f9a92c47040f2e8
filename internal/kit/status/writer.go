package status

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

const (
	// detailsInterval is how often status is written for nothing but numbers and words.
	// What a condition says, and why, is written at once.
	detailsInterval = time.Second
	// memory bounds what a Writer remembers: entries of about 200 bytes.
	memory = 65536
)

// Object is a declared object.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// Writer writes the statuses of objects of one kind.
type Writer struct {
	client   client.Client
	fresh    *apply.Freshness
	recorder events.EventRecorder
	clock    clock.PassiveClock
	news     News
	// written remembers when a status was last written, by UID. Losing it costs status
	// writes, nothing else.
	written *lru.Cache
}

// NewWriter returns a Writer that has written nothing yet.
func NewWriter(to client.Client, fresh *apply.Freshness, recorder events.EventRecorder, clock clock.PassiveClock, news News) *Writer {
	return &Writer{client: to, fresh: fresh, recorder: recorder, clock: clock, news: news, written: lru.New(memory)}
}

// Update makes next the status of an object where it differs. at is where the object has its status. details returns a
// status with the numbers and words of another one: two that are equal then differ in nothing else, and the write may wait.
// It returns the object as it was, and whether anything was written. recheck is when to try again what may wait.
func Update[T Object, S any](
	ctx context.Context, w *Writer, object T, at *S, next S, details func(of, from S) S, recheck *outcome.Recheck,
	children ...client.Object,
) (before T, written bool, err error) {
	// At steady state not even the times differ. To find that out, a plain comparison needs
	// no allocations.
	if reflect.DeepEqual(at, &next) || equality.Semantic.DeepEqual(*at, next) {
		return object, false, nil
	}
	if next = withoutSecrets(next); equality.Semantic.DeepEqual(*at, next) {
		return object, false, nil
	}
	before, _ = object.DeepCopyObject().(T)
	onlyDetails := equality.Semantic.DeepEqual(details(*at, next), next)
	*at = next
	written, wait, err := w.Write(ctx, before, object, onlyDetails, children...)
	recheck.After(wait)
	return before, written, err
}

// Write writes the status of after, an object that differs from before in nothing else,
// and reports whether it did. Where onlyDetails differ it may be too soon for another write:
// then it returns how long to wait. children are what the status speaks of, as the cache
// shows them; a status of a stale cache is not written.
//
// Errors have a policy. An object that is gone by now is none.
func (w *Writer) Write(
	ctx context.Context, before, after Object, onlyDetails bool, children ...client.Object,
) (written bool, wait time.Duration, err error) {
	if wait := w.detailsWait(after, onlyDetails); wait > 0 {
		return false, wait, nil
	}
	if err := w.fresh.Confirm(ctx, append([]client.Object{before}, children...)...); err != nil {
		return false, 0, err
	}
	// Locked: a status that speaks of a spec which is no longer there must not be written.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := w.client.Status().Patch(ctx, after, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return false, 0, nil
		}
		return false, 0, outcome.Classify(w.subject(after), err)
	}
	if after.GetResourceVersion() != before.GetResourceVersion() {
		w.fresh.Wrote(after)
	}
	w.written.Add(after.GetUID(), w.clock.Now())
	Record(w.recorder, w.news, after, before.GetConditions(), after.GetConditions())
	return true, 0, nil
}

// detailsWait holds details back, so that a rollout of many pods does not cost a write
// for each.
func (w *Writer) detailsWait(object Object, onlyDetails bool) time.Duration {
	last, ok := w.written.Get(object.GetUID())
	if !onlyDetails || !ok {
		return 0
	}
	return detailsInterval - w.clock.Since(last.(time.Time))
}

func (w *Writer) subject(object Object) string {
	return fmt.Sprintf("the status of %s %q", KindOf(w.client, object), object.GetName())
}

// KindOf is what the kind of an object is called.
func KindOf(known client.Client, object client.Object) string {
	if kind, err := known.GroupVersionKindFor(object); err == nil {
		return kind.Kind
	}
	return fmt.Sprintf("%T", object)
}

// WithMessagesOf returns conditions with the words that others have for the same reasons:
// words are details.
func WithMessagesOf(others, conditions []metav1.Condition) []metav1.Condition {
	reworded := make([]metav1.Condition, 0, len(conditions))
	for _, c := range conditions {
		if other := meta.FindStatusCondition(others, c.Type); other != nil && other.Reason == c.Reason {
			c.Message = other.Message
		}
		reworded = append(reworded, c)
	}
	return reworded
}
