package transfer

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

const (
	// Recheck is when to look again for what no watch shows.
	Recheck = 10 * time.Second
	// ListenEvery is how often the log of a pod is read, and so how often progress is written.
	ListenEvery = 30 * time.Second
)

// Use looks at a claim and the pods that use it, past the cache, which has only what Slipway made. It refuses what cannot be
// read or written; with the reason VolumeInUse it also says how it is used. missing is the reason where there is no such claim, and field
// says who names it. again is when to look for it again, zero: a watch tells.
func Use(
	ctx context.Context, live client.Reader, claim types.NamespacedName, missing, field string, again time.Duration,
) (mover.Use, error) {
	volume := &corev1.PersistentVolumeClaim{}
	err := live.Get(ctx, claim, volume)
	switch {
	case apierrors.IsNotFound(err):
		return mover.Use{}, outcome.Waitingf(again, missing, "there is no PersistentVolumeClaim %q (%s)", claim.Name, field)
	case err != nil:
		return mover.Use{}, outcome.Classify(fmt.Sprintf("PersistentVolumeClaim %q", claim.Name), err)
	}
	pods, err := Pods(ctx, live, claim.Namespace, Mount(claim.Name))
	if err != nil {
		return mover.Use{}, outcome.Classify("the pods that use the volume", err)
	}
	use, trouble := mover.UseOf(volume, pods)
	switch {
	case trouble == nil:
		return use, nil
	case trouble.Reason == slipwayv1alpha1.ReasonInvalid:
		return use, outcome.Invalidf(trouble.Reason, "%s (%s)", trouble.Message, field)
	default:
		return use, outcome.Waitingf(Recheck, trouble.Reason, "%s", trouble.Message)
	}
}

// Logs reads the end of the log of a container.
type Logs interface {
	Tail(ctx context.Context, namespace, pod, container string) ([]byte, error)
}

// PodLogs reads logs from the API server.
type PodLogs struct{ Client kubernetes.Interface }

// Tail returns the last lines of a log, at most 4 KiB.
func (p PodLogs) Tail(ctx context.Context, namespace, pod, container string) ([]byte, error) {
	lines, limit := int64(5), int64(4096)
	return p.Client.CoreV1().Pods(namespace).GetLogs(pod,
		&corev1.PodLogOptions{Container: container, TailLines: &lines, LimitBytes: &limit}).DoRaw(ctx)
}

// Progress reads how far a step is. Before is what is known: a log that cannot be read costs the news, nothing else.
func Progress(
	ctx context.Context, logs Logs, namespace string, seen mover.Observation, before *slipwayv1alpha1.TransferProgress, now time.Time,
) *slipwayv1alpha1.TransferProgress {
	text, err := logs.Tail(ctx, namespace, seen.Pod, string(seen.Step))
	if err != nil {
		logf.FromContext(ctx).V(1).Info("The log of the pod cannot be read", "pod", seen.Pod, "error", err.Error())
		return before
	}
	last := before
	for line := range bytes.Lines(text) {
		if p, ok := mover.ParseProgress(line); ok {
			last = p.Transfer(seen.StepSince, now)
		}
	}
	return last
}
