package health

import (
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// AnnotationRevision is set by the Deployment controller on a Deployment and on its
// ReplicaSets: the one with the Deployment's own value is of the current template.
const AnnotationRevision = "deployment.kubernetes.io/revision"

// Deployment judges a Deployment by what its controller says of it. A Deployment
// that its controller has not looked at since the last change is Progressing.
func Deployment(deployment *appsv1.Deployment) Verdict {
	name := fmt.Sprintf("Deployment %q", deployment.Name)
	if !deployment.DeletionTimestamp.IsZero() {
		return Verdict{State: Terminating, Reason: slipwayv1alpha1.ReasonTerminating, Message: name + " is being deleted"}
	}
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return Verdict{State: Progressing, Reason: ReasonNotObserved, Message: name + " has not been looked at by its controller yet"}
	}
	if c := deploymentCondition(deployment, appsv1.DeploymentReplicaFailure); c != nil && c.Status == corev1.ConditionTrue {
		return podCreation(name, c.Message)
	}
	if c := deploymentCondition(deployment, appsv1.DeploymentProgressing); c != nil && c.Reason == "ProgressDeadlineExceeded" {
		return Verdict{State: Failed, Reason: slipwayv1alpha1.ReasonProgressDeadlineExceeded, Message: name + " made no progress within its deadline", Terminal: true}
	}
	if RolledOut(deployment) {
		return Verdict{State: Healthy}
	}
	return Verdict{State: Progressing, Reason: slipwayv1alpha1.ReasonRolloutInProgress, Message: name + " is rolling out"}
}

// RolledOut tells that every pod of a Deployment is of the current template and
// available, and none of an earlier template is left.
func RolledOut(deployment *appsv1.Deployment) bool {
	want := int32(1)
	if deployment.Spec.Replicas != nil {
		want = *deployment.Spec.Replicas
	}
	status := deployment.Status
	return deployment.UID != "" && status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want
}

// The message of a refused pod names a pod that never existed and counts what is
// used at the moment.
var (
	refusedPod = regexp.MustCompile(`^pods "[^"]*" is forbidden: `)
	quota      = regexp.MustCompile(`exceeded quota: ([^,]+), requested: (.*), used: .*, limited: (.*)$`)
)

// podCreation classifies the answer of the API server to the creation of a pod.
func podCreation(name, message string) Verdict {
	message = refusedPod.ReplaceAllString(message, "")
	if m := quota.FindStringSubmatch(message); m != nil {
		return Verdict{
			State: Failed, Reason: slipwayv1alpha1.ReasonQuotaExceeded,
			Message: fmt.Sprintf("%s cannot create its pods: they need %s and ResourceQuota %q allows %s in all", name, m[2], m[1], m[3]),
		}
	}
	reason := slipwayv1alpha1.ReasonPodsNotCreated
	if strings.Contains(message, "forbidden") || strings.Contains(message, "violates PodSecurity") || strings.Contains(message, "denied the request") {
		reason = slipwayv1alpha1.ReasonPodsForbidden
	}
	return Verdict{State: Failed, Reason: reason, Message: fmt.Sprintf("%s cannot create its pods: %s", name, message)}
}

func deploymentCondition(deployment *appsv1.Deployment, conditionType appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range deployment.Status.Conditions {
		if deployment.Status.Conditions[i].Type == conditionType {
			return &deployment.Status.Conditions[i]
		}
	}
	return nil
}
