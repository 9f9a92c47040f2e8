package desired

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Service makes the pods reachable under one name, at the port of the revision that
// serves and, during a rollout, at that of the next one. All ports lead to wherever the
// pod that is reached listens, because the container's port is meant by its name: pods
// of either revision answer callers of either port.
func Service(app *slipwayv1alpha1.WebApp, serving int32, next ...int32) *corev1ac.ServiceApplyConfiguration {
	spec := corev1ac.ServiceSpec().
		WithSelector(Selector(app)).
		WithPorts(servicePort(portName, serving))
	for _, port := range next {
		// The port that has callers keeps its name: under another one it would have no
		// endpoints for a moment.
		spec.WithPorts(servicePort(fmt.Sprintf("%s-%d", portName, port), port))
	}
	return corev1ac.Service(Name(app), app.Namespace).
		WithLabels(Labels(app)).
		WithOwnerReferences(ownerReference(app)).
		WithSpec(spec)
}

func servicePort(name string, port int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().
		WithName(name).
		WithPort(port).
		WithTargetPort(intstr.FromString(portName)).
		WithProtocol(corev1.ProtocolTCP)
}

// HorizontalPodAutoscaler owns the Deployment's replicas. It returns nil when the
// application is not autoscaled.
func HorizontalPodAutoscaler(app *slipwayv1alpha1.WebApp) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	return owner(app).HorizontalPodAutoscaler(app.Spec.Autoscaling, MinReplicas(app))
}

// PodDisruptionBudget lets a node drain take one pod at a time. It returns nil where
// there is never more than one.
func PodDisruptionBudget(app *slipwayv1alpha1.WebApp) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return owner(app).PodDisruptionBudget(MaxReplicas(app))
}

// PersistentVolumeClaim holds the application's data. It returns nil without
// storage. Unless the data may go with the application it has no owner, so that
// nothing deletes it.
func PersistentVolumeClaim(app *slipwayv1alpha1.WebApp) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	storage := app.Spec.Storage
	if storage == nil {
		return nil
	}
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: storage.Size}))
	if storage.StorageClassName != nil {
		spec.WithStorageClassName(*storage.StorageClassName)
	}
	claim := corev1ac.PersistentVolumeClaim(VolumeName(app), app.Namespace).
		WithLabels(Labels(app)).
		WithSpec(spec)
	if storage.DeletionPolicy == slipwayv1alpha1.DeletionPolicyDelete {
		claim.WithOwnerReferences(ownerReference(app))
	}
	return claim
}

// Replicas states a Deployment's number of pods and nothing else.
func Replicas(app *slipwayv1alpha1.WebApp, replicas int32) *appsv1ac.DeploymentApplyConfiguration {
	return owner(app).Replicas(replicas)
}
