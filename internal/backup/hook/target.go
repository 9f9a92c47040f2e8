package hook

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/health"
)

// labelTemplateHash is what a Deployment adds to the names of its ReplicaSets.
const labelTemplateHash = "pod-template-hash"

// Target is a pod that hooks run in.
type Target struct {
	Pod string
	UID types.UID
}

// Writers are the pods that have a claim and may write to it, by name, as mover.VolumeOf says: so all of them make a volume live
// (mover.UseOf). Labels and owners tell nothing: who may make pods or Jobs may set them.
func Writers(pods []corev1.Pod, claim string) []*corev1.Pod {
	var found []*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if _, writes := mover.VolumeOf(pod, claim); writes && !ended {
			found = append(found, pod)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Container is the name of the container that a hook runs in: the one that is named, else the first that mounts the claim,
// else the first. It is empty where the pod has none of the name among its containers: init containers and ephemeral ones
// are none.
func Container(pod *corev1.Pod, named, claim string) string {
	volume, _ := mover.VolumeOf(pod, claim)
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		mounts := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
		if container.Name == named || named == "" && mounts {
			return container.Name
		}
	}
	if named == "" && len(pod.Spec.Containers) > 0 {
		return pod.Spec.Containers[0].Name
	}
	return ""
}

// Targets are the pods that the hooks of a claim run in: all that run and may write to it. Each of them has to allow both
// commands before any of them runs: one that could be held and not released would be worse than no copy.
func Targets(pods []corev1.Pod, claim string, hooks *slipwayv1alpha1.BackupHooks) ([]Target, *health.Trouble) {
	var targets []Target
	for _, pod := range Writers(pods, claim) {
		if pod.Status.Phase != corev1.PodRunning || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if hooks.Before != nil {
			if refused := refusal(pod, claim, &hooks.Before.BackupHook, FieldBefore); refused != nil {
				return nil, refused
			}
		}
		if hooks.After != nil {
			if refused := refusal(pod, claim, hooks.After, FieldAfter); refused != nil {
				return nil, refused
			}
		}
		targets = append(targets, Target{Pod: pod.Name, UID: pod.UID})
	}
	if len(targets) > slipwayv1alpha1.MaxHookPods {
		return nil, &health.Trouble{Reason: slipwayv1alpha1.ReasonInvalid, Message: fmt.Sprintf(
			"%d pods can write to PersistentVolumeClaim %q: hooks (spec.hooks of the Backup) run in at most %d", len(targets), claim,
			slipwayv1alpha1.MaxHookPods)}
	}
	return targets, nil
}

// The fields of the hooks, for messages.
const (
	FieldBefore = "spec.hooks.before"
	FieldAfter  = "spec.hooks.after"
)

func refusal(pod *corev1.Pod, claim string, hook *slipwayv1alpha1.BackupHook, field string) *health.Trouble {
	container := Container(pod, hook.Container, claim)
	if container == "" {
		return &health.Trouble{Reason: slipwayv1alpha1.ReasonHookNotAllowed, Message: fmt.Sprintf(
			"%s has no container %q (%s.container of the Backup)", Workload(pod), hook.Container, field)}
	}
	return Refusal(pod, container, hook.Command, field)
}

// Workload names what a pod belongs to, without the random part of a name.
func Workload(pod *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return fmt.Sprintf("Pod %q", pod.Name)
	}
	if hash := pod.Labels[labelTemplateHash]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, cut := strings.CutSuffix(owner.Name, "-"+hash); cut {
			return fmt.Sprintf("Deployment %q", name)
		}
	}
	return fmt.Sprintf("%s %q", owner.Kind, owner.Name)
}

// AllHeld reports whether a volume has been held since the before hooks ran: every pod that may write to it now, whatever its
// phase, is one in which before has succeeded.
func AllHeld(state *slipwayv1alpha1.BackupRunHooks, pods []corev1.Pod) bool {
	if state.Before == nil {
		return false
	}
	for _, pod := range Writers(pods, state.Claim) {
		held := slices.ContainsFunc(state.Pods, func(p slipwayv1alpha1.BackupRunHookPod) bool {
			return p.Pod == pod.Name && p.UID == pod.UID && p.Before != nil && p.Before.Phase == slipwayv1alpha1.HookSucceeded
		})
		if !held {
			return false
		}
	}
	return true
}
