package transfer

import (
	"context"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/mover"
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

// Refused finds out why a Job has no pod, and notes it as what keeps it from starting. A Job has no condition for that: its
// controller only says it in an event, which no watch of ours shows. again is when to look once more, zero: not. It is about half of
// the time that the Job has waited. whose says whose fields messages name, and root that spec.mover.runAs is Root.
func Refused(ctx context.Context, live client.Reader, job *batchv1.Job, seen *mover.Observation, whose string, root bool, now time.Time) (again time.Duration) {
	if seen.State != mover.Starting || seen.Pod != "" || job.UID == "" {
		return 0
	}
	again = min(max(now.Sub(job.CreationTimestamp.Time)/2, refusedAgain), refusedAgainMax)
	list := &corev1.EventList{}
	ofJob := fields.Set{"involvedObject.uid": string(job.UID), "type": corev1.EventTypeWarning, "reason": "FailedCreate"}.AsSelector()
	if err := live.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFieldsSelector{Selector: ofJob}, client.Limit(maxEvents)); err != nil {
		logf.FromContext(ctx).V(1).Info("The events of a Job could not be read", "job", job.Name, "error", err.Error())
		return again
	}
	var newest *corev1.Event
	for i := range list.Items {
		if newest == nil || newest.LastTimestamp.Before(&list.Items[i].LastTimestamp) {
			newest = &list.Items[i]
		}
	}
	if newest == nil {
		return again
	}
	trouble := health.JobRefused(job.Name, text.Cut(text.Printable(redact.Clean(newest.Message)), MaxMessage)).Trouble()
	// The fields are those of a WebApp, in the words of package health. A Job has one pod.
	ours := strings.NewReplacer(" (spec.replicas)", "", "(spec.resources.", "(spec.mover.resources.", ", spec.resources.", ", spec.mover.resources.")
	trouble.Message = ours.Replace(trouble.Message)
	if root && health.ViolatesPodSecurity(newest.Message) {
		trouble.Message += " (spec.mover.runAs"
		if whose != "" {
			trouble.Message += " " + whose
		}
		trouble.Message += " is " + string(slipwayv1alpha1.MoverRoot) + ", which the namespace has to allow)"
	}
	seen.Trouble = trouble
	return again
}
