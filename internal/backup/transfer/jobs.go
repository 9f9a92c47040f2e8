package transfer

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/podevents"
	"github.com/slipway-dev/slipway/internal/redact"
	"github.com/slipway-dev/slipway/internal/text"
)

const (
	// maxEvents bounds how many warnings about a Job are read: whoever may write events in the namespace can write any number.
	maxEvents = 64
	// refusedAgain and refusedAgainMax bound the pause between two reads.
	refusedAgain    = time.Second
	refusedAgainMax = 30 * time.Second
)

// Jobs looks at Jobs that move data. Every controller that makes one looks at it here, so that whatever keeps its pod from
// starting is told by each of them.
type Jobs struct {
	live   client.Reader
	events *podevents.Reader
}

// NewJobs returns what looks at Jobs. It reads past the cache what that has not.
func NewJobs(live client.Reader, clock clock.PassiveClock) *Jobs {
	return &Jobs{live: live, events: podevents.NewReader(live, clock)}
}

// Look is what a Job has come to, and how long it is until that may be told otherwise though nothing changes. Zero: until something
// changes.
type Look struct {
	mover.Observation
	Again time.Duration
}

// Look says what a Job has come to, in the names of what it uses. The cache may know that the Job has ended and not yet know how
// its pod did: before a result counts as lost, the pods are read past the cache. Of a Job without a pod, and of a pod that does not
// say why it does not start, events are read: no watch of ours shows them.
func (j *Jobs) Look(
	ctx context.Context, job *batchv1.Job, pods []corev1.Pod, steps []mover.Step, names mover.Names, now time.Time,
) (Look, error) {
	look := Look{Observation: mover.Observe(job, pods, steps)}
	if look.State == mover.Failed && look.Trouble.Reason == slipwayv1alpha1.ReasonPodLost {
		ofJob := func(pod *corev1.Pod) bool { return metav1.IsControlledBy(pod, job) }
		fresh, err := Pods(ctx, j.live, job.Namespace, ofJob, client.MatchingLabels{batchv1.JobNameLabel: job.Name})
		if err != nil {
			return Look{Observation: mover.Observation{State: mover.Starting, Since: look.Since}}, outcome.Classify(
				"the pods of the Job", err,
			)
		}
		pods = fresh
		look.Observation = mover.Observe(job, pods, steps)
	}
	if look.State == mover.Starting && look.Trouble == nil {
		if pod := mover.Newest(job, pods); pod == nil {
			look.Trouble, look.Again = j.refused(ctx, job, now)
		} else {
			warnings, again := j.events.Listen(ctx, []*corev1.Pod{pod}, false)
			look.Observation, look.Again = mover.Observe(job, pods, steps, warnings[pod.UID]...), again.In()
		}
	}
	look.Trouble = names.Name(look.Trouble)
	return look, nil
}

// refused is why a Job has no pod. A Job has no condition for that: its controller only says it in an event. again is when to look
// once more: after about half of the time that the Job has waited.
func (j *Jobs) refused(ctx context.Context, job *batchv1.Job, now time.Time) (trouble *health.Trouble, again time.Duration) {
	again = min(max(now.Sub(job.CreationTimestamp.Time)/2, refusedAgain), refusedAgainMax)
	list := &corev1.EventList{}
	ofJob := fields.Set{"involvedObject.uid": string(job.UID), "type": corev1.EventTypeWarning, "reason": "FailedCreate"}.AsSelector()
	if err := j.live.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFieldsSelector{Selector: ofJob},
		client.Limit(maxEvents)); err != nil {
		logf.FromContext(ctx).V(1).Info("The events of a Job could not be read", "job", job.Name, "error", err.Error())
		return nil, again
	}
	var newest *corev1.Event
	for i := range list.Items {
		if newest == nil || newest.LastTimestamp.Before(&list.Items[i].LastTimestamp) {
			newest = &list.Items[i]
		}
	}
	if newest == nil {
		return nil, again
	}
	return health.JobRefused(job, text.Cut(text.Printable(redact.Clean(newest.Message)), MaxMessage)).Trouble(), again
}
