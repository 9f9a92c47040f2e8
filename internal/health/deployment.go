package health

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// AnnotationRevision is set by the Deployment controller on a Deployment and on its
// ReplicaSets. The ReplicaSet with the Deployment's value belongs to the current template.
const AnnotationRevision = "deployment.kubernetes.io/revision"

// Deployment evaluates a Deployment by the conditions of its controller. It is Progressing
// until the controller has observed the last change.
func Deployment(deployment *appsv1.Deployment) Verdict {
	name := fmt.Sprintf("Deployment %q", deployment.Name)
	if !deployment.DeletionTimestamp.IsZero() {
		return Verdict{State: Terminating, Reason: slipwayv1alpha1.ReasonTerminating, Message: name + " is being deleted"}
	}
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return Verdict{State: Progressing, Reason: ReasonNotObserved, Message: name + " has not been looked at by its controller yet"}
	}
	if refusal := RefusalOf(deployment); refusal != nil {
		return refusal.verdict(deployment)
	}
	if c := deploymentCondition(deployment, appsv1.DeploymentProgressing); c != nil && c.Reason == "ProgressDeadlineExceeded" {
		return Verdict{State: Failed, Reason: slipwayv1alpha1.ReasonProgressDeadlineExceeded, Message: name + " made no progress within its deadline", Terminal: true}
	}
	if RolledOut(deployment) {
		return Verdict{State: Healthy}
	}
	if Finished(deployment) {
		return Verdict{
			State: Progressing, Reason: slipwayv1alpha1.ReasonReplicasNotReady,
			Message: fmt.Sprintf("%s is rolled out and lacks pods: %d of %d are available", name, deployment.Status.AvailableReplicas, wanted(deployment)),
		}
	}
	return Verdict{State: Progressing, Reason: slipwayv1alpha1.ReasonRolloutInProgress, Message: name + " is rolling out"}
}

// Finished reports whether the rollout of the current template once completed, and no pod
// of an earlier template is left. If pods are missing after that, the rollout is not the
// cause.
func Finished(deployment *appsv1.Deployment) bool {
	c := deploymentCondition(deployment, appsv1.DeploymentProgressing)
	return c != nil && c.Reason == "NewReplicaSetAvailable" && deployment.Status.UpdatedReplicas == deployment.Status.Replicas
}

// wanted returns the desired number of pods.
func wanted(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas != nil {
		return *deployment.Spec.Replicas
	}
	return 1
}

// RolledOut reports whether every pod belongs to the current template and is available, and
// no pod of an earlier template is left.
func RolledOut(deployment *appsv1.Deployment) bool {
	want := wanted(deployment)
	status := deployment.Status
	return deployment.UID != "" && status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want
}

// CurrentTemplate returns the value of the label pod-template-hash of the current
// template's pods. It is found on the ReplicaSet with the Deployment's revision. It is
// empty while the Deployment controller has not created that ReplicaSet, or has not
// observed the Deployment.
func CurrentTemplate(deployment *appsv1.Deployment, replicaSets []metav1.PartialObjectMetadata) string {
	revision := deployment.Annotations[AnnotationRevision]
	if deployment.UID == "" || deployment.Status.ObservedGeneration < deployment.Generation || revision == "" {
		return ""
	}
	for i := range replicaSets {
		if replicaSets[i].Annotations[AnnotationRevision] == revision {
			return replicaSets[i].Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		}
	}
	return ""
}

func deploymentCondition(deployment *appsv1.Deployment, conditionType appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range deployment.Status.Conditions {
		if deployment.Status.Conditions[i].Type == conditionType {
			return &deployment.Status.Conditions[i]
		}
	}
	return nil
}
