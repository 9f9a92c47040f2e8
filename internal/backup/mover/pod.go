package mover

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// userWants adds what a user says of the pod.
func (j Job) userWants(pod *corev1ac.PodSpecApplyConfiguration) {
	if j.Mover == nil {
		return
	}
	for _, secret := range j.Mover.ImagePullSecrets {
		pod.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(secret.Name))
	}
	if j.Mover.PriorityClassName != "" {
		pod.WithPriorityClassName(j.Mover.PriorityClassName)
	}
}

// tolerationsOf are those of a pod, but for the ones that the API server gives to every pod.
func tolerationsOf(pod *corev1.Pod) []corev1.Toleration {
	return slices.DeleteFunc(slices.Clone(pod.Spec.Tolerations), func(t corev1.Toleration) bool {
		everyPod := t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
		return everyPod && t.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds != nil
	})
}

func tolerationOf(t *corev1.Toleration) *corev1ac.TolerationApplyConfiguration {
	toleration := corev1ac.Toleration()
	if t.Key != "" {
		toleration.WithKey(t.Key)
	}
	if t.Operator != "" {
		toleration.WithOperator(t.Operator)
	}
	if t.Value != "" {
		toleration.WithValue(t.Value)
	}
	if t.Effect != "" {
		toleration.WithEffect(t.Effect)
	}
	if t.TolerationSeconds != nil {
		toleration.WithTolerationSeconds(*t.TolerationSeconds)
	}
	return toleration
}
