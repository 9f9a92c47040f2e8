package backuprun

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/hook"
	"github.com/slipway-dev/slipway/internal/backup/podexec"
)

// Execer runs a command in a container. It returns nil only when the command has ended with exit code 0, a *podexec.ExitError
// when with another one, and any other error when nobody knows.
type Execer interface {
	Exec(ctx context.Context, namespace, pod, container string, command []string) error
}

// call is a command of a run.
type call struct {
	run types.UID
	hook.Call
}

// How many commands run at a time, in all and in a namespace. They mostly wait. A namespace of which none runs does not wait, so
// one that holds a database of a neighbour is not prolonged by the hooks of others: how many namespaces there are is bounded by
// the runs that have a place.
const (
	maxCalls             = 64
	maxCallsPerNamespace = 8
)

// do runs a command, unless the run does not ask for it any more: then the phase is empty. The pod is read just before, past
// every cache: its UID and its annotation decide. The API server has no way to name the UID in the request itself, so it is
// read again afterwards, and what ran in another pod of the name is no success.
func (r *Reconciler) do(ctx context.Context, owner types.NamespacedName, c call) (ended hook.Ended) {
	log := logf.FromContext(ctx).WithValues("BackupRun", owner, "hook", c.Field(), "pod", c.Pod)
	defer func() {
		if problem := recover(); problem != nil {
			log.Error(nil, "A hook panicked", "panic", fmt.Sprint(problem))
			ended = interrupted("the operator failed while the command ran")
		}
	}()
	run := &slipwayv1alpha1.BackupRun{}
	err := r.kit.Live.Get(ctx, owner, run)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return interrupted("the BackupRun could not be read")
	case err != nil || run.UID != c.run || !hook.Asks(run.Status.Hooks, c.Call):
		return hook.Ended{}
	}
	command := hook.Command(run.Status.Hooks, c.Before)
	pod, gone, err := r.hookPod(ctx, owner.Namespace, c)
	switch {
	case err != nil:
		return interrupted("the pod could not be read")
	case gone:
		return podGone()
	}
	container := hook.Container(pod, command.Container, c.Claim)
	if refused := hook.Refusal(pod, container, command.Command, c.Field()); refused != nil {
		return hook.Ended{Phase: slipwayv1alpha1.HookFailed, Reason: refused.Reason, Message: refused.Message}
	}
	allowed := hook.Timeout(command)
	limited, cancel := context.WithTimeout(ctx, allowed)
	defer cancel()
	err = r.exec.Exec(limited, owner.Namespace, c.Pod, container, command.Command)
	in := fmt.Sprintf("%s, container %q: ", hook.Workload(pod), container)
	exit := (*podexec.ExitError)(nil)
	switch {
	case errors.As(err, &exit):
		return failed(in + exit.Error())
	case errors.Is(err, podexec.ErrTooMuchOutput):
		return failed(in + podexec.ErrTooMuchOutput.Error())
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return failed(in + fmt.Sprintf("the command did not end within %v", allowed))
	case err != nil:
		log.Info("Nobody knows how a hook ended", "error", err.Error())
		return interrupted(in + "the command could not be started, or the connection to it was lost")
	}
	if _, gone, err := r.hookPod(ctx, owner.Namespace, c); err != nil || gone {
		return interrupted(in + "the pod was replaced while the command ran")
	}
	return hook.Ended{Phase: slipwayv1alpha1.HookSucceeded}
}

// hookPod reads the pod of a call. gone reports whether it is not there any more, or does not run: then nothing is held in it.
func (r *Reconciler) hookPod(ctx context.Context, namespace string, c call) (pod *corev1.Pod, gone bool, err error) {
	pod = &corev1.Pod{}
	err = r.kit.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: c.Pod}, pod)
	if apierrors.IsNotFound(err) {
		return pod, true, nil
	}
	if err != nil {
		return pod, false, err
	}
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return pod, ended || pod.UID != c.UID, nil
}

func failed(message string) hook.Ended {
	return hook.Ended{Phase: slipwayv1alpha1.HookFailed, Reason: slipwayv1alpha1.ReasonHookFailed, Message: message}
}

func interrupted(message string) hook.Ended {
	return hook.Ended{Phase: slipwayv1alpha1.HookFailed, Reason: slipwayv1alpha1.ReasonHookInterrupted, Message: message}
}

func podGone() hook.Ended {
	return hook.Ended{Phase: slipwayv1alpha1.HookSkipped, Reason: slipwayv1alpha1.ReasonPodGone, Message: "the pod has gone"}
}
