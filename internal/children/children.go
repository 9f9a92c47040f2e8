package children

import (
	"cmp"
	"maps"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// defaultCPUPercent is the average CPU use to aim at where the spec says nothing.
const defaultCPUPercent = 80

// Owner is who owns a Deployment and what stands around it.
type Owner struct {
	// Kind is the owner's.
	Kind string
	// APIVersion is that of the kind. Default: this API's.
	APIVersion string
	// Object has the name and the UID.
	Object metav1.Object
	// Child is what the children are called. Default: the name of the owner.
	Child string
	// Label is on every child, with the name of the owner. It finds the pods.
	Label string
	// LabelValue is its value where the name of the owner is too long for one. Default: the name.
	LabelValue string
	// More are further labels, and Annotations are on every child but the autoscaler. None of them replaces a label above.
	More, Annotations map[string]string
}

// Name is what the children are called.
func (o Owner) Name() string { return cmp.Or(o.Child, o.Object.GetName()) }

func (o Owner) labelValue() string { return cmp.Or(o.LabelValue, o.Object.GetName()) }

// Labels are on every child.
func (o Owner) Labels() map[string]string {
	labels := maps.Clone(o.More)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway,
		slipwayv1alpha1.LabelName:      o.labelValue(),
		o.Label:                        o.labelValue(),
	})
	return labels
}

// Selector finds the pods. It can never change: a Deployment's selector is immutable.
func (o Owner) Selector() map[string]string { return map[string]string{o.Label: o.labelValue()} }

// MinReplicas is the number of pods that should run at the least: the desired one, or the autoscaler's lower bound.
func MinReplicas(replicas *int32, autoscaling *slipwayv1alpha1.Autoscaling) int32 {
	if autoscaling != nil {
		return Or(autoscaling.MinReplicas, 1)
	}
	return Or(replicas, 1)
}

// MaxReplicas is the number of pods that may run at the most: the desired one, or the autoscaler's upper bound.
func MaxReplicas(replicas *int32, autoscaling *slipwayv1alpha1.Autoscaling) int32 {
	if autoscaling != nil {
		return autoscaling.MaxReplicas
	}
	return Or(replicas, 1)
}

// Or returns what a pointer points to, or what stands for nil.
func Or[T any](pointer *T, fallback T) T {
	if pointer == nil {
		return fallback
	}
	return *pointer
}

// Reference makes a child go with its owner.
func (o Owner) Reference() *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(cmp.Or(o.APIVersion, slipwayv1alpha1.SchemeGroupVersion.String())).
		WithKind(o.Kind).
		WithName(o.Object.GetName()).
		WithUID(o.Object.GetUID()).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// HorizontalPodAutoscaler owns the Deployment's replicas. It returns nil without
// autoscaling.
func (o Owner) HorizontalPodAutoscaler(
	autoscaling *slipwayv1alpha1.Autoscaling, minReplicas int32,
) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	if autoscaling == nil {
		return nil
	}
	percent := int32(defaultCPUPercent)
	if autoscaling.CPUPercent != nil {
		percent = *autoscaling.CPUPercent
	}
	cpu := autoscalingv2ac.ResourceMetricSource().
		WithName(corev1.ResourceCPU).
		WithTarget(autoscalingv2ac.MetricTarget().
			WithType(autoscalingv2.UtilizationMetricType).
			WithAverageUtilization(percent))
	return autoscalingv2ac.HorizontalPodAutoscaler(o.Name(), o.Object.GetNamespace()).
		WithLabels(o.Labels()).
		WithOwnerReferences(o.Reference()).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
				WithAPIVersion("apps/v1").
				WithKind("Deployment").
				WithName(o.Name())).
			WithMinReplicas(minReplicas).
			WithMaxReplicas(autoscaling.MaxReplicas).
			WithMetrics(autoscalingv2ac.MetricSpec().
				WithType(autoscalingv2.ResourceMetricSourceType).
				WithResource(cpu)))
}

// PodDisruptionBudget lets a node drain take one pod at a time, and never blocks it: it
// counts the pods that are away, so that an only pod may go. It returns nil where
// there are never two, of which a drain could take both.
func (o Owner) PodDisruptionBudget(maxReplicas int32) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	if maxReplicas < 2 {
		return nil
	}
	return policyv1ac.PodDisruptionBudget(o.Name(), o.Object.GetNamespace()).
		WithLabels(o.Labels()).
		WithAnnotations(o.Annotations).
		WithOwnerReferences(o.Reference()).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(o.Selector())).
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow))
}

// Replicas states a Deployment's number of pods and nothing else. Applied by a field
// manager of its own it keeps the number in place while ownership passes from the
// operator to an autoscaler: a field that nobody owns would fall back to 1.
func (o Owner) Replicas(replicas int32) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(o.Name(), o.Object.GetNamespace()).
		WithSpec(appsv1ac.DeploymentSpec().WithReplicas(replicas))
}
