package generate

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Time is a time within a few minutes of 1970, or none.
func Time(s *Source) metav1.Time {
	if !s.Maybe() {
		return metav1.Time{}
	}
	return metav1.Unix(int64(s.Byte()), 0)
}

// Pod makes a pod of a Deployment's template, in any state that a kubelet may report.
func Pod(s *Source, name, templateHash string) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: templateHash}},
		Status: corev1.PodStatus{
			Phase:             Pick(s, corev1.PodPending, corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown, ""),
			ContainerStatuses: containers(s, "app", "sidecar"), InitContainerStatuses: containers(s, "migrate"),
		},
	}
	if s.Byte() > 230 {
		deleted := metav1.Unix(100, 0)
		pod.DeletionTimestamp = &deleted
	}
	if pod.Status.Phase == corev1.PodFailed {
		pod.Status.Reason, pod.Status.Message = Pick(s, "", "Evicted", "OutOfcpu", "OutOfexample.com/gpu", "DeadlineExceeded"), s.Text()
	}
	for _, conditionType := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.PodReady} {
		if !s.Maybe() {
			continue
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: conditionType, Status: Pick(s, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown),
			Reason: Pick(s, "", corev1.PodReasonUnschedulable, corev1.PodReasonSchedulingGated), LastTransitionTime: Time(s),
			Message: Pick(s, "0/3 nodes are available: 3 Insufficient cpu.", "pod has unbound immediate PersistentVolumeClaims", s.Text()),
		})
	}
	return pod
}

func containers(s *Source, names ...string) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, name := range names {
		if !s.Maybe() {
			continue
		}
		statuses = append(statuses, corev1.ContainerStatus{
			Name: name, Image: Pick(s, "shop:1", "access-denied:v1", ""), Ready: s.Maybe(), RestartCount: int32(s.Below(6)),
			State: containerState(s), LastTerminationState: containerState(s),
		})
	}
	return statuses
}

func containerState(s *Source) corev1.ContainerState {
	switch s.Below(4) {
	case 1:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: Time(s)}}
	case 2:
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: Pick[int32](s, 0, 1, 137, -1), Reason: Pick(s, "Error", "Completed", "OOMKilled", "StartError", "ContainerCannotRun"),
			Message: Pick(s, "cannot open database\n", "exec: \"/nope\": no such file", s.Text()), StartedAt: Time(s), FinishedAt: Time(s),
		}}
	case 3:
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: Pick(s, "ContainerCreating", "PodInitializing", "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable",
				"ErrImageNeverPull",
				"ErrImageInspect", "SignatureValidationFailed", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError",
				"RunContainerError", "PostStartHookError", "StartError", "CrashLoopBackOff", ""),
			Message: Pick(s, "not found", "401 Unauthorized", "i/o timeout", "back-off 10s", s.Text()),
		}}
	default:
		return corev1.ContainerState{}
	}
}

// Deployment gives a Deployment counts and conditions that its controller may report.
func Deployment(s *Source, deployment *appsv1.Deployment) {
	deployment.Generation = 2
	deployment.Spec.Replicas = Optional[int32](s, 1, 0, 2, 3)
	upTo := func(most int32) int32 { return int32(s.Below(int(most) + 1)) }
	// The API server refuses a status with more updated or ready pods than pods, or more available pods than ready ones.
	status := appsv1.DeploymentStatus{ObservedGeneration: int64(1 + s.Below(2)), Replicas: upTo(3)}
	status.UpdatedReplicas, status.ReadyReplicas = upTo(status.Replicas), upTo(status.Replicas)
	status.AvailableReplicas = upTo(status.ReadyReplicas)
	deployment.Status = status
	if s.Maybe() {
		deployment.Status.Conditions = append(deployment.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: Pick(s, corev1.ConditionTrue, corev1.ConditionFalse),
			Reason:         Pick(s, "ReplicaSetUpdated", "NewReplicaSetAvailable", "ProgressDeadlineExceeded"),
			LastUpdateTime: Time(s), LastTransitionTime: Time(s),
		})
	}
	if s.Byte() > 200 {
		deployment.Status.Conditions = append(deployment.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: Pick(s, corev1.ConditionTrue, corev1.ConditionFalse), Reason: "FailedCreate",
			Message: Pick(s, `pods "shop-5d9-x7k" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4`,
				`pods "shop-5d9-x7k" is forbidden: violates PodSecurity "restricted:latest"`, s.Text()),
		})
	}
}

// PodEvents makes warnings of a pod, as a kubelet may write them.
func PodEvents(s *Source) []corev1.Event {
	events := make([]corev1.Event, s.Below(3))
	for i := range events {
		events[i] = corev1.Event{
			InvolvedObject: corev1.ObjectReference{FieldPath: Pick(s, "spec.containers{app}", "spec.containers{sidecar}", "")},
			Reason:         Pick(s, "Unhealthy", "FailedCreatePodSandBox", "FailedMount", "BackOff"),
			Message: Pick(s, "Readiness probe failed: ", "Startup probe failed: ", "Liveness probe failed: ",
				"Failed to create pod sandbox: ", "") +
				Pick(s, "HTTP probe failed with statuscode: 500", "dial tcp 10.0.0.1:8080: connect: connection refused", s.Text()),
			LastTimestamp: metav1.Unix(int64(s.Byte()), 0),
		}
	}
	return events
}
