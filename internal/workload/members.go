package workload

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Everybody who may create pods in a namespace may give them any labels and any owner references. So labels alone make no pod
// one of a Deployment. A pod with the labels of a ReplicaSet and a reference to it is one of its pods for Kubernetes too: the
// ReplicaSet's controller counts it, and deletes what is more than the ReplicaSet asks for.

// ReplicaSetsOf returns the ReplicaSets that a Deployment controls, out of those with its labels.
func ReplicaSetsOf(deployment *appsv1.Deployment, replicaSets []metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata {
	var own []metav1.PartialObjectMetadata
	for i := range replicaSets {
		if controls("Deployment", &deployment.ObjectMeta, &replicaSets[i].ObjectMeta) {
			own = append(own, replicaSets[i])
		}
	}
	return own
}

// PodsOf returns the pods of the ReplicaSets that a Deployment controls, out of those with its labels, in their order. Of
// those that have not ended it returns at most as many as the Deployment asks for or its controller counts, and as many as a
// rollout may add: those that a ReplicaSet would keep.
func PodsOf(deployment *appsv1.Deployment, replicaSets []metav1.PartialObjectMetadata, pods []corev1.Pod) []corev1.Pod {
	if deployment.UID == "" {
		return nil
	}
	sets := map[string]*metav1.ObjectMeta{}
	for i := range replicaSets {
		if set := &replicaSets[i].ObjectMeta; controls("Deployment", &deployment.ObjectMeta, set) {
			sets[set.Name] = set
		}
	}
	var own []corev1.Pod
	var living []*corev1.Pod
	for i := range pods {
		owner := metav1.GetControllerOfNoCopy(&pods[i])
		if owner == nil || sets[owner.Name] == nil || !controls("ReplicaSet", sets[owner.Name], &pods[i].ObjectMeta) ||
			!IsOf(&pods[i], sets[owner.Name].Labels[appsv1.DefaultDeploymentUniqueLabelKey]) {
			continue
		}
		own = append(own, pods[i])
		if !hasEnded(&pods[i]) {
			living = append(living, &pods[i])
		}
	}
	most := mostPods(deployment)
	if len(living) <= most {
		return own
	}
	slices.SortStableFunc(living, byStay)
	surplus := map[string]bool{}
	for _, pod := range living[most:] {
		surplus[pod.Name] = true
	}
	return slices.DeleteFunc(own, func(pod corev1.Pod) bool { return surplus[pod.Name] })
}

// controls reports whether the owner, of a kind of group apps, is the controller of an object in its namespace. The controllers
// of Kubernetes go by the kind and the name too.
func controls(kind string, owner, object *metav1.ObjectMeta) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	return ref != nil && owner.UID != "" && ref.UID == owner.UID && ref.Kind == kind && ref.Name == owner.Name &&
		ref.APIVersion == appsv1.SchemeGroupVersion.String() && owner.Namespace == object.Namespace
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded || !pod.DeletionTimestamp.IsZero()
}

// mostPods is how many pods of a Deployment there may be.
func mostPods(deployment *appsv1.Deployment) int {
	replicas := 1
	if deployment.Spec.Replicas != nil {
		replicas = int(*deployment.Spec.Replicas)
	}
	replicas = max(replicas, int(deployment.Status.Replicas))
	surge := intstr.FromString("25%") // the default of Kubernetes
	if rolling := deployment.Spec.Strategy.RollingUpdate; rolling != nil && rolling.MaxSurge != nil {
		surge = *rolling.MaxSurge
	}
	more, err := intstr.GetScaledValueFromIntOrPercent(&surge, replicas, true)
	if err != nil {
		more = 0
	}
	// More than once as many are never needed.
	return replicas + min(max(more, 0), max(replicas, 1))
}

// byStay orders the pods that a ReplicaSet keeps before those that it deletes.
func byStay(a, b *corev1.Pod) int {
	rank := func(pod *corev1.Pod) int {
		switch {
		case isReady(pod):
			return 0
		case pod.Status.Phase == corev1.PodRunning:
			return 1
		case pod.Spec.NodeName != "":
			return 2
		default:
			return 3
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func isReady(pod *corev1.Pod) bool { return readyCondition(pod) != nil }

// readyCondition returns the condition by which a pod is ready, or nil.
func readyCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// ReadySince returns since when all of these pods are ready without interruption, those that have ended aside. False: one is
// not ready, or there are fewer than count. What is known of a pod is the second in which it became ready.
func ReadySince(pods []*corev1.Pod, count int32) (since time.Time, ready bool) {
	for _, pod := range pods {
		if hasEnded(pod) {
			continue
		}
		c := readyCondition(pod)
		if c == nil {
			return time.Time{}, false
		}
		if c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
		count--
	}
	return since, count <= 0
}
