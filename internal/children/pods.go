package children

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// RollingUpdate never takes a pod that serves away before its successor serves.
func RollingUpdate() *appsv1ac.DeploymentStrategyApplyConfiguration {
	return appsv1ac.DeploymentStrategy().
		WithType(appsv1.RollingUpdateDeploymentStrategyType).
		WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
			WithMaxUnavailable(intstr.FromInt32(0)).
			WithMaxSurge(intstr.FromString("25%")))
}

// Spread prefers different nodes and zones for the pods, separately for each template, and never keeps a pod from being
// scheduled.
func (o Owner) Spread() []*corev1ac.TopologySpreadConstraintApplyConfiguration {
	over := func(topologyKey string) *corev1ac.TopologySpreadConstraintApplyConfiguration {
		return corev1ac.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(topologyKey).
			WithWhenUnsatisfiable(corev1.ScheduleAnyway).
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(o.Selector())).
			WithMatchLabelKeys(appsv1.DefaultDeploymentUniqueLabelKey)
	}
	return []*corev1ac.TopologySpreadConstraintApplyConfiguration{over(corev1.LabelHostname), over(corev1.LabelTopologyZone)}
}

// Resources are those of a spec. Nil: it states none.
func Resources(spec *slipwayv1alpha1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	if spec == nil || len(spec.Requests)+len(spec.Limits) == 0 {
		return nil
	}
	requirements := corev1ac.ResourceRequirements()
	if len(spec.Requests) > 0 {
		requirements.WithRequests(spec.Requests)
	}
	if len(spec.Limits) > 0 {
		requirements.WithLimits(spec.Limits)
	}
	return requirements
}

// PodSecurity satisfies the restricted Pod Security level. The user is the image's own, which must not be root.
func PodSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	return corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

// ContainerSecurity satisfies the restricted Pod Security level.
func ContainerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// PullSecrets has the image of a pod pulled with these Secrets.
func PullSecrets(pod *corev1ac.PodSpecApplyConfiguration, secrets []slipwayv1alpha1.LocalReference) {
	for _, secret := range secrets {
		pod.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(secret.Name))
	}
}
