package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReplicaSet is the kind as it is cached: its metadata.
func ReplicaSet() *metav1.PartialObjectMetadata {
	replicaSet := &metav1.PartialObjectMetadata{}
	replicaSet.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return replicaSet
}

// OwnedBy selects what an index has of an owner, in its namespace. Of an owner that is in none it selects what the index has in all of
// them: there the label alone tells whose an object is.
func OwnedBy(owner client.Object, index string) *client.ListOptions {
	return &client.ListOptions{Namespace: owner.GetNamespace(), FieldSelector: fields.OneTermEqualSelector(index, owner.GetName())}
}

// Pods lists the pods of an owner, by name. They are shared with the cache and must not be changed: there may be hundreds,
// and they are only looked at.
func Pods(ctx context.Context, reader client.Reader, owner client.Object, index string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, OwnedBy(owner, index), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods.Items, nil
}

// ReplicaSets lists the metadata of the ReplicaSets of an owner, shared with the cache.
func ReplicaSets(ctx context.Context, reader client.Reader, owner client.Object, index string) ([]metav1.PartialObjectMetadata, error) {
	replicaSets := &metav1.PartialObjectMetadataList{}
	replicaSets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	if err := reader.List(ctx, replicaSets, OwnedBy(owner, index), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ReplicaSets: %w", err)
	}
	return replicaSets.Items, nil
}
