// Package refusal looks again at what refuses a Deployment's pods, before that is told. The ReplicaSet's controller tells why a
// pod was refused when it was refused first, and tries again after a pause that grows up to a quarter of an hour. So what it says
// may be long mended.
//
// What refuses is read where it can be found (a ResourceQuota, a LimitRange, a missing ServiceAccount), and watched as long as it
// refuses. Once it is mended, an annotation of the Deployment is written, once for each mend. The Deployment's controller passes
// it on to the ReplicaSet, whose controller tries again at once when the ReplicaSet changes.
package refusal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/workload"
)

// AnnotationMended is when the cause of a refusal was last seen to be mended.
const AnnotationMended = "slipway.dev/refusal-mended"

const (
	// grace is how long pods may take to be created after a mend. After that the refusal is told again: something else refuses.
	grace = 5 * time.Second
	// memory is how many refusals are remembered. Losing one costs that a mend is not seen.
	memory = 4096
)

// Reader looks at refusals.
type Reader struct {
	// Watches tell the owner when something that refuses changes. Nil: nothing does.
	Watches *blocker.Watches

	live   client.Reader
	writer client.Writer
	clock  clock.PassiveClock
	known  *lru.Cache
}

// NewReader returns a Reader that has seen nothing yet.
func NewReader(live client.Reader, writer client.Writer, clock clock.PassiveClock) *Reader {
	return &Reader{live: live, writer: writer, clock: clock, known: lru.New(memory)}
}

// known is what is remembered of the refusal of a Deployment.
type known struct {
	// since is that of the refusal. Another one is another refusal.
	since time.Time
	// answer is what was said last, if that is something else than at first.
	answer string
	// first is what was seen of the cause at first.
	first string
	// mended is what was written as the last mend, empty while it refuses, and at is when.
	mended string
	at     time.Time
}

// Forget forgets an owner that has gone.
func (r *Reader) Forget(ctx context.Context, owner types.NamespacedName) {
	if r != nil {
		r.Watches.Keep(ctx, owner, nil)
	}
}

// Look returns the workload with what is left of its refusal today, and how long it is until that may be another one though
// nothing changes. What cannot be read is taken for what it was.
func (r *Reader) Look(ctx context.Context, owner types.NamespacedName, w workload.Workload) (workload.Workload, outcome.Recheck) {
	if r == nil {
		return w, 0
	}
	w.Looked, w.Refusal = true, health.CurrentRefusal(w.Deployment, w.ReplicaSets)
	if w.Refusal == nil {
		r.Watches.Keep(ctx, owner, nil)
		return w, 0
	}
	before := known{since: w.Refusal.Since}
	if seen, ok := r.known.Get(w.Deployment.UID); ok && seen.(known).since.Equal(w.Refusal.Since) {
		before = seen.(known)
	}
	if before.answer != "" {
		w.Refusal.Answer = before.answer
	}
	found, err := r.find(ctx, w.Deployment.Namespace, w.Refusal)
	if err != nil {
		log.FromContext(ctx).V(1).Info("What refuses pods could not be read", "error", err.Error())
		return w, 0
	}
	r.Watches.Keep(ctx, owner, found.objects)
	if before.first == "" {
		before.first = found.version
	}
	now := r.clock.Now()
	mended := found.mended || !found.decided && found.version != before.first
	// A quota that has room is mended once, however its count changes.
	mend := found.version
	if found.decided {
		mend = "yes"
	}
	if !mended {
		before.mended = ""
		r.known.Add(w.Deployment.UID, before)
		w.Refusal = found.today
		return w, 0
	}
	if before.mended != mend && now.Sub(before.at) >= grace {
		if err := r.wake(ctx, w.Deployment, now); err != nil {
			log.FromContext(ctx).V(1).Info("The Deployment could not be told of a mend", "error", err.Error())
			return w, outcome.Recheck(grace)
		}
		before.mended, before.at = mend, now
	}
	if left := grace - now.Sub(before.at); left > 0 {
		r.known.Add(w.Deployment.UID, before)
		w.Refusal = nil
		return w, outcome.Recheck(left)
	}
	// Something else refuses by now.
	if last := r.lastSaid(ctx, w, before.at); last.Answer != w.Refusal.Answer {
		before.answer, before.first, w.Refusal = last.Answer, "", last
	}
	r.known.Add(w.Deployment.UID, before)
	return w, 0
}

// found is what was read of a cause.
type found struct {
	// objects are what refuses.
	objects []*metav1.PartialObjectMetadata
	// version is that of all of them.
	version string
	// mended tells that they refuse no more, if decided. If not, only a change of them tells.
	mended, decided bool
	// today is the refusal with the figures of today.
	today *health.Refusal
}

func (r *Reader) find(ctx context.Context, namespace string, refusal *health.Refusal) (found, error) {
	f := found{today: refusal}
	kind, name := refusal.Cause()
	switch kind {
	case health.CauseQuota:
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		gone, err := r.get(ctx, quota)
		if err != nil {
			return f, err
		}
		f.add(string(kind), quota)
		if gone {
			f.mended, f.decided = true, true
			return f, nil
		}
		if f.mended, f.decided = refusal.Fits(quota); f.decided {
			f.today = refusal.Today(quota)
		}
	case health.CauseAccount:
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		gone, err := r.get(ctx, account)
		if err != nil {
			return f, err
		}
		f.add(string(kind), account)
		f.mended, f.decided = !gone, true
	case health.CauseLimits:
		list := &corev1.LimitRangeList{}
		if err := r.live.List(ctx, list, client.InNamespace(namespace), client.Limit(maxRanges)); err != nil {
			return f, fmt.Errorf("list the LimitRanges: %w", err)
		}
		for i := range list.Items {
			f.add(string(kind), &list.Items[i])
		}
	}
	return f, nil
}

// maxRanges bounds how many LimitRanges are looked at.
const maxRanges = 8

// get reads an object, and tells whether it is not there.
func (r *Reader) get(ctx context.Context, object client.Object) (gone bool, err error) {
	err = r.live.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

func (f *found) add(kind string, object client.Object) {
	seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}}
	seen.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	f.objects = append(f.objects, seen)
	parts := append(strings.Fields(f.version), object.GetName()+"="+object.GetResourceVersion())
	slices.Sort(parts)
	f.version = strings.Join(parts, " ")
}

// wake has the pods of a Deployment created now.
func (r *Reader) wake(ctx context.Context, deployment *appsv1.Deployment, now time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": deployment.UID, "annotations": map[string]string{AnnotationMended: now.UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return err
	}
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	return r.writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("slipway-refusal"))
}

// maxEvents bounds how many events of a ReplicaSet are read.
const maxEvents = 64

// lastSaid is the last answer to the ReplicaSet since a time, as its controller tells in events. Without one it is the first.
func (r *Reader) lastSaid(ctx context.Context, w workload.Workload, since time.Time) *health.Refusal {
	last := *w.Refusal
	for i := range w.ReplicaSets {
		set := &w.ReplicaSets[i]
		if set.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != w.Template() {
			continue
		}
		events := &corev1.EventList{}
		of := client.MatchingFields{"involvedObject.uid": string(set.UID), "reason": "FailedCreate"}
		if err := r.live.List(ctx, events, client.InNamespace(set.Namespace), of, client.Limit(maxEvents)); err != nil {
			return &last
		}
		at := since.Add(-time.Second)
		for j := range events.Items {
			said, ok := strings.CutPrefix(events.Items[j].Message, "Error creating: ")
			if when := events.Items[j].LastTimestamp.Time; ok && !when.Before(at) {
				last.Answer, at = said, when
			}
		}
	}
	return &last
}
