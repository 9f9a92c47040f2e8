// Package refusal looks again at what refuses a Deployment's pods, before that is told. The ReplicaSet's controller tells why a
// pod was refused when it was refused first, and tries again after a pause that grows up to a quarter of an hour. So what it says
// may be long mended.
//
// What refuses is read where it can be found (a ResourceQuota, a LimitRange, a missing ServiceAccount, the Pod Security level of
// the namespace), and watched as long as it refuses. Once it is mended, an annotation of the Deployment is written, once for each
// mend. The Deployment's controller passes it on to the ReplicaSet, whose controller tries again at once when the ReplicaSet changes.
//
// Anything else may refuse, too: an admission policy, a webhook, what a LimitRange adds to pods. So unless something is seen to
// refuse, the pods are asked for again from time to time in the same way, less and less often (retryPause). A dry run would tell
// without a write, but not the truth: policies see another user and another owner, and webhooks with side effects refuse all dry
// runs. And it needs the right to create pods.
package refusal

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/workload"
)

const (
	// AnnotationMended is when the cause of a refusal was last seen to be mended.
	AnnotationMended = "slipway.dev/refusal-mended"
	// AnnotationRetried is when refused pods were last asked for again though nothing was seen to be mended.
	AnnotationRetried = "slipway.dev/refusal-retried"
)

const (
	// grace is how long pods may take to be created after a mend. After that the refusal is told again: something else refuses.
	grace = 5 * time.Second
	// memory is how many refusals are remembered. Losing one costs that a mend is not seen.
	memory = 4096
	// What was said last is read after a pause that doubles between these, as that of the ReplicaSet's controller does.
	minPause = time.Minute
	maxPause = 16 * time.Minute
	// Refused pods are asked for again after a quarter of the time since they were refused first, between these. After an hour
	// that becomes rarer: a Deployment that nobody mends costs a write in maxRetryLater in the end.
	minRetry      = 5 * time.Second
	maxRetry      = 30 * time.Second
	maxRetryLater = 5 * time.Minute
	// retriesPerSecond and retriesAtOnce bound the retries of a whole cluster.
	retriesPerSecond, retriesAtOnce = 2, 20
)

// retryPause is how long pods that have been refused for a time are not asked for again.
func retryPause(refused time.Duration) time.Duration {
	later := min(refused/120, maxRetryLater)
	return min(max(refused/4, minRetry), max(maxRetry, later))
}

// Reader looks at refusals.
type Reader struct {
	// Watches tell the owner when something that refuses changes. Nil: nothing does.
	Watches *blocker.Watches

	live   client.Reader
	writer client.Writer
	clock  clock.PassiveClock
	known  *lru.Cache
	// retries bounds how often pods are asked for again, of all Deployments together: one policy may refuse those of a whole cluster.
	retries *rate.Limiter
}

// NewReader returns a Reader that has seen nothing yet.
func NewReader(live client.Reader, writer client.Writer, clock clock.PassiveClock) *Reader {
	return &Reader{
		live: live, writer: writer, clock: clock, known: lru.New(memory), retries: rate.NewLimiter(retriesPerSecond, retriesAtOnce),
	}
}

// known is what is remembered of the refusal of a Deployment.
type known struct {
	// since is that of the refusal. Another one is another refusal.
	since time.Time
	// answer is what was said last, if that is something else than at first.
	answer string
	// first is what was seen of the cause at first, and ranges of the LimitRanges beside a quota.
	first, ranges string
	// figures is the answer as it is told for as long as the quota is of the version: what is used may change all the time.
	figures, figuresOf string
	// mended is what was written as the last mend, empty while it refuses, and at is when.
	mended string
	at     time.Time
	// read is when the last word was read, and retried when the pods were last asked for again without a mend.
	read, retried time.Time
}

// begin is when the pods were refused first, or woken last.
func (k *known) begin() time.Time {
	if k.at.After(k.since) {
		return k.at
	}
	return k.since
}

// nextRead is when the last word is to be read again.
func (k *known) nextRead() time.Time {
	begin := k.begin()
	if k.read.Before(begin) {
		return begin.Add(grace)
	}
	return k.read.Add(min(max(k.read.Sub(begin), minPause), maxPause))
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
	now := r.clock.Now()
	if before.answer != "" {
		w.Refusal.Answer = before.answer
	}
	found, err := r.find(ctx, w.Deployment.Namespace, w.Refusal)
	if err != nil {
		log.FromContext(ctx).V(1).Info("What refuses pods could not be read", "error", err.Error())
		return w, outcome.Recheck(minPause)
	}
	r.Watches.Keep(ctx, owner, found.objects)
	if before.first == "" {
		before.first, before.ranges = found.version, found.ranges
	}
	if found.ranges != before.ranges {
		// What pods ask for without a word of their own may be less by now.
		found.decided = found.mended
	}
	if !found.mended && (found.decided || found.version == before.first) {
		before.mended = ""
	} else if left, err := r.mend(ctx, w.Deployment, &before, found.version, now); err != nil {
		log.FromContext(ctx).V(1).Info("The Deployment could not be told of a mend", "error", err.Error())
		return w, outcome.Recheck(grace)
	} else if left > 0 {
		r.known.Add(w.Deployment.UID, before)
		w.Refusal = nil
		return w, outcome.Recheck(left)
	}
	again := r.report(ctx, &w, &before, found, now)
	again.After(r.retry(ctx, w.Deployment, &before, found, now))
	r.known.Add(w.Deployment.UID, before)
	return w, again
}

// retry has pods asked for again that nothing is seen to refuse, and returns how long it is until the next time.
func (r *Reader) retry(ctx context.Context, deployment *appsv1.Deployment, k *known, found found, now time.Time) time.Duration {
	if found.decided && !found.mended {
		return 0
	}
	last := k.begin()
	for _, at := range []time.Time{k.retried, retriedAt(deployment)} {
		if at.After(last) && !at.After(now) {
			last = at
		}
	}
	if left := retryPause(last.Sub(k.since)) - now.Sub(last); left > 0 {
		return left
	}
	if !r.retries.AllowN(now, 1) {
		return minRetry
	}
	if err := r.wake(ctx, deployment, AnnotationRetried, now); err != nil {
		log.FromContext(ctx).V(1).Info("The pods of a Deployment could not be asked for again", "error", err.Error())
		return minRetry
	}
	k.retried = now
	return retryPause(now.Sub(k.since))
}

// retriedAt is when an operator last had the pods asked for again: this one may have started since.
func retriedAt(deployment *appsv1.Deployment) time.Time {
	at, _ := time.Parse(time.RFC3339, deployment.Annotations[AnnotationRetried])
	return at
}

// mend wakes the Deployment, once for each mend, and returns how long its pods may still take.
func (r *Reader) mend(ctx context.Context, deployment *appsv1.Deployment, k *known, version string, now time.Time) (time.Duration, error) {
	if k.mended != version && now.Sub(k.at) >= grace {
		if err := r.wake(ctx, deployment, AnnotationMended, now); err != nil {
			return 0, err
		}
		k.mended, k.at = version, now
	}
	return grace - now.Sub(k.at), nil
}

// report makes the refusal of a workload the one that is to be reported, and returns when the last word is to be read again. It is not
// read of what is seen to refuse.
func (r *Reader) report(ctx context.Context, w *workload.Workload, k *known, found found, now time.Time) outcome.Recheck {
	if found.full != nil && k.figuresOf != found.version {
		k.figures, k.figuresOf = w.Refusal.Today(found.full).Answer, found.version
	}
	if k.figuresOf != "" && k.figuresOf == found.version {
		w.Refusal.Answer = k.figures
	}
	if found.decided && !found.mended {
		return 0
	}
	if now.Before(k.nextRead()) {
		return outcome.Recheck(k.nextRead().Sub(now))
	}
	last := r.lastReported(ctx, *w, *k)
	k.read = now
	if last.Same(w.Refusal) {
		return outcome.Recheck(k.nextRead().Sub(now))
	}
	// Something else refuses by now. What that is is looked at next.
	k.answer, k.first, k.ranges, k.mended, k.figuresOf, w.Refusal = last.Answer, "", "", "", "", last
	return outcome.Recheck(grace)
}

// gone is the version of what is not there.
const gone = "gone"

// podSecurityLabels begins the names of the labels with the Pod Security level of a namespace.
const podSecurityLabels = "pod-security.kubernetes.io/"

// maxRanges bounds how many LimitRanges are looked at.
const maxRanges = 8

// wake has the pods of a Deployment created now. The annotation says why.
func (r *Reader) wake(ctx context.Context, deployment *appsv1.Deployment, annotation string, now time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": deployment.UID, "annotations": map[string]string{annotation: now.UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return err
	}
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	return r.writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("slipway-refusal"))
}

// maxEvents bounds how many events of a ReplicaSet are read.
const maxEvents = 64

// combined is how Kubernetes begins the message of an event that stands for several.
const combined = "(combined from similar events): "

// lastReported is the last answer to the ReplicaSet since it was refused or woken, as its controller tells in events. Without one it
// is what is told.
func (r *Reader) lastReported(ctx context.Context, w workload.Workload, k known) *health.Refusal {
	last := *w.Refusal
	at := k.begin().Add(-time.Second)
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
		for j := range events.Items {
			said, ok := strings.CutPrefix(strings.TrimPrefix(events.Items[j].Message, combined), "Error creating: ")
			if when := events.Items[j].LastTimestamp.Time; ok && !when.Before(at) {
				last.Answer, at = said, when
			}
		}
	}
	return &last
}
