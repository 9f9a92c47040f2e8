package operator

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// fieldManagerPrefix is common to the field managers of Slipway's controllers.
const fieldManagerPrefix = "slipway-"

// cacheOptions is the cache budget: what the operator keeps in memory, and why. An
// object of a kind that is not listed here makes a read fail instead of silently
// starting a watch on the whole cluster. namespaces are the ones to watch, none: all.
func cacheOptions(namespaces []string) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway})
	child := cache.ByObject{Label: ours, Transform: keepOwnManagedFields}
	var watched map[string]cache.Config
	if len(namespaces) > 0 {
		watched = map[string]cache.Config{}
		for _, namespace := range namespaces {
			watched[namespace] = cache.Config{}
		}
	}
	return cache.Options{
		DefaultNamespaces:           watched,
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            keepOwnManagedFields,
		ByObject: map[client.Object]cache.ByObject{
			// The declared objects, all of them.
			&slipwayv1alpha1.WebApp{}: {Transform: cache.TransformStripManagedFields()},

			// Children: only Slipway's own. Their managed fields are what drift is found with.
			&appsv1.Deployment{}:                     child,
			&corev1.Service{}:                        child,
			&autoscalingv2.HorizontalPodAutoscaler{}: child,
			&policyv1.PodDisruptionBudget{}:          child,
			&corev1.PersistentVolumeClaim{}:          child,
			&appsv1.ControllerRevision{}:             child,

			// Pods of Slipway's applications: status says why one does not start. The spec
			// is most of a pod and is not needed.
			&corev1.Pod{}: {Label: ours, Transform: keepPodStatus},
			// ReplicaSets, as metadata: which one is of the current template.
			&appsv1.ReplicaSet{}: {Label: ours, Transform: keepMetadata(health.AnnotationRevision)},

			// Every Secret and ConfigMap of the cluster, as metadata without labels and
			// annotations: that it exists, and at which version.
			&corev1.Secret{}:    {Transform: keepIdentity},
			&corev1.ConfigMap{}: {Transform: keepIdentity},
		},
	}
}

var _ toolscache.TransformFunc = keepOwnManagedFields

// keepOwnManagedFields drops what other field managers own: about a third of an object.
func keepOwnManagedFields(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		var own []metav1.ManagedFieldsEntry
		for _, entry := range o.GetManagedFields() {
			if strings.HasPrefix(entry.Manager, fieldManagerPrefix) {
				own = append(own, entry)
			}
		}
		o.SetManagedFields(own)
	}
	return object, nil
}

func keepPodStatus(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields = nil
	pod.Annotations = nil
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	return pod, nil
}

// keepMetadata keeps identity, labels, owners and the named annotations.
func keepMetadata(annotations ...string) toolscache.TransformFunc {
	return func(object any) (any, error) {
		o, ok := object.(metav1.Object)
		if !ok {
			return object, nil
		}
		kept := map[string]string{}
		for _, name := range annotations {
			if value, ok := o.GetAnnotations()[name]; ok {
				kept[name] = value
			}
		}
		o.SetAnnotations(kept)
		o.SetManagedFields(nil)
		return object, nil
	}
}

// keepIdentity keeps name, namespace, UID and version.
func keepIdentity(object any) (any, error) {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		if _, deleted := object.(toolscache.DeletedFinalStateUnknown); deleted {
			return object, nil
		}
		return nil, fmt.Errorf("%T must be cached as metadata only", object)
	}
	metadata.ObjectMeta = metav1.ObjectMeta{
		Name:            metadata.Name,
		Namespace:       metadata.Namespace,
		UID:             metadata.UID,
		ResourceVersion: metadata.ResourceVersion,
	}
	return metadata, nil
}
