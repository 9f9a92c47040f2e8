package health

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// typed decodes an object into its Go type.
func typed[T any](object map[string]any) (*T, error) {
	into := new(T)
	return into, runtime.DefaultUnstructuredConverter.FromUnstructured(object, into)
}

// evaluated makes the verdict of an object of a built-in kind complete.
func evaluated(v Verdict, kind, name, field string, object map[string]any) Verdict {
	v.Field, v.Layer = field, LayerProfile
	for _, at := range lookup(object, field) {
		v.Field = at.path
		value, _ := scalar(at.value)
		v.Value = cutValue(value)
	}
	for _, spelling := range []string{kind, strings.ToLower(kind)} {
		if rest, ok := strings.CutPrefix(v.Message, fmt.Sprintf("%s %q", spelling, name)); ok {
			v.Message = strings.TrimLeft(rest, ": ")
		}
	}
	v.Message = cutValue(v.Message)
	if v.State == Unknown && v.Reason == "" {
		v.Reason, v.Message = ReasonNoSignal, "nothing in its status is known to tell how it does"
	}
	return v
}

func malformed(err error) Verdict {
	return Verdict{
		State: Unknown, Reason: ReasonMalformed, Message: "it does not have the form of its kind: " + cutValue(err.Error()),
		Field: ".status", Layer: LayerProfile,
	}
}

func evaluateDeployment(object map[string]any, _ time.Time) Verdict {
	deployment, err := typed[appsv1.Deployment](object)
	if err != nil {
		return malformed(err)
	}
	v := Deployment(deployment)
	field := ".status.availableReplicas"
	switch {
	case v.Reason == ReasonNotObserved:
		field = ".status.observedGeneration"
	case v.Reason == slipwayv1alpha1.ReasonProgressDeadlineExceeded:
		field = conditionField("Progressing", "reason")
	case v.State == Failed:
		field = conditionField("ReplicaFailure", "status")
	case v.Reason == slipwayv1alpha1.ReasonRolloutInProgress:
		field = ".status.updatedReplicas"
	case v.State == Healthy && deployment.Status.AvailableReplicas == 0:
		field, v.Message = ".spec.replicas", "nothing runs, as spec.replicas says"
	}
	return evaluated(v, "Deployment", deployment.Name, field, object)
}

func evaluatePodObject(object map[string]any, _ time.Time) Verdict {
	pod, err := typed[corev1.Pod](object)
	if err != nil {
		return malformed(err)
	}
	if pod.Status.Phase == corev1.PodSucceeded {
		return evaluated(Verdict{State: Healthy, Message: "has ended well", Terminal: true}, "Pod", pod.Name, ".status.phase", object)
	}
	if pod.Status.Phase == "" && len(pod.Status.Conditions)+len(pod.Status.ContainerStatuses) == 0 {
		return evaluated(Verdict{State: Unknown, Reason: ReasonNoStatus, Message: "nothing has written its status"}, "Pod", pod.Name, ".status", object)
	}
	v := Pod(pod)
	field := conditionField("Ready", "status")
	switch {
	case pod.Status.Phase == corev1.PodFailed:
		field = ".status.phase"
	case v.Reason == slipwayv1alpha1.ReasonUnschedulable:
		field = conditionField("PodScheduled", "status")
	case v.State != Healthy:
		field = notReadyContainer(pod)
	}
	return evaluated(v, "Pod", pod.Name, field, object)
}

// notReadyContainer returns the path of the first container that is not ready.
func notReadyContainer(pod *corev1.Pod) string {
	for i := range pod.Status.InitContainerStatuses {
		if status := &pod.Status.InitContainerStatuses[i]; !status.Ready && status.State.Running == nil {
			return ".status.initContainerStatuses" + step{key: "name", is: status.Name}.text()
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; !status.Ready {
			return ".status.containerStatuses" + step{key: "name", is: status.Name}.text()
		}
	}
	return conditionField("Ready", "status")
}

func evaluateJob(object map[string]any, _ time.Time) Verdict {
	job, err := typed[batchv1.Job](object)
	if err != nil {
		return malformed(err)
	}
	v := Job(job)
	field := ".status.startTime"
	switch {
	case v.State == Healthy:
		field = conditionField("Complete", "status")
	case v.State == Failed && v.Terminal:
		field = conditionField("Failed", "status")
	case v.State == Failed:
		field = conditionField("FailureTarget", "status")
	case v.Reason == ReasonJobSuspended:
		field = ".spec.suspend"
	}
	return evaluated(v, "Job", job.Name, field, object)
}

// conditionField is the path of a field of one of the object's own conditions.
func conditionField(conditionType, field string) string {
	return ".status.conditions" + step{key: "type", is: conditionType}.text() + "." + field
}
