package operator

import (
	"cmp"
	"maps"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/keep"
	"github.com/slipway-dev/slipway/internal/kit/webhook"
	"github.com/slipway-dev/slipway/internal/operator/kindrole"
)

// cacheOptions is the cache budget: what the operator keeps in memory, and why. An
// object of a kind that is listed neither here nor by the kind that it is about makes a read fail instead of silently
// starting a watch on the whole cluster. namespaces are the ones to watch, none: all.
func cacheOptions(kinds []kit.Kind, namespaces []string) cache.Options {
	child := cache.ByObject{Label: keep.Ours(), Transform: keep.OwnManagedFields}
	options := cache.Options{
		DefaultNamespaces:           watched(namespaces),
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            keep.OwnManagedFields,
		ByObject: map[client.Object]cache.ByObject{
			// Children: only Slipway's own. Their managed fields are what drift is found with.
			&appsv1.Deployment{}:                     child,
			&corev1.Service{}:                        child,
			&autoscalingv2.HorizontalPodAutoscaler{}: child,
			&policyv1.PodDisruptionBudget{}:          child,
			&corev1.PersistentVolumeClaim{}:          child,
			&appsv1.ControllerRevision{}:             child,
			&corev1.ServiceAccount{}:                 child,
			&rbacv1.Role{}:                           child,
			&rbacv1.RoleBinding{}:                    child,
			&networkingv1.Ingress{}:                  child,
			&batchv1.Job{}:                           child,

			// Pods of Slipway's applications: status says why one does not start. Of the spec,
			// which is most of a pod, only what is told of in such words: what keeps it from the
			// scheduler, what a container asks for, how it is probed and, of a WebApp, what is mounted where.
			&corev1.Pod{}: {Label: keep.Ours(), Transform: keepPodStatus},
			// ReplicaSets, as metadata: which one is of the current template.
			&appsv1.ReplicaSet{}: {Label: keep.Ours(), Transform: keep.Metadata(health.AnnotationRevision)},

			// One object: whether the API server trusts the operator's webhooks.
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: {
				Field:     fields.OneTermEqualSelector("metadata.name", webhook.ConfigurationName),
				Transform: cache.TransformStripManagedFields(),
			},

			// Every Secret and ConfigMap of the cluster, as metadata without labels and
			// annotations: that it exists, and at which version.
			&corev1.Secret{}:    {Transform: keep.Identity},
			&corev1.ConfigMap{}: {Transform: keep.Identity},
		},
	}
	if len(namespaces) == 0 {
		// Every namespace, as metadata: that it is being deleted.
		options.ByObject[going.Kind()] = cache.ByObject{Transform: keep.Deletion}
	}
	for _, kind := range kinds {
		maps.Copy(options.ByObject, kind.Budget)
	}
	// Which kinds there are, as names, and the ClusterRole that lets the monitor read them.
	maps.Copy(options.ByObject, kindrole.Cached())
	return options
}

// ownNamespace is where the operator keeps what is its own.
func ownNamespace(options Options) string { return cmp.Or(options.Namespace, DefaultNamespace) }

// watched are the namespaces to watch; nil: all.
func watched(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	configs := map[string]cache.Config{}
	for _, namespace := range namespaces {
		configs[namespace] = cache.Config{}
	}
	return configs
}

func keepPodStatus(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields = nil
	pod.Annotations = nil
	spec := corev1.PodSpec{NodeName: pod.Spec.NodeName, SchedulingGates: pod.Spec.SchedulingGates}
	for _, c := range pod.Spec.Containers {
		kept := corev1.Container{Name: c.Name, Resources: c.Resources}
		if c.ReadinessProbe != nil {
			kept.ReadinessProbe, kept.Ports = c.ReadinessProbe, c.Ports
		}
		if pod.Labels[slipwayv1alpha1.LabelWebApp] != "" {
			for _, m := range c.VolumeMounts {
				kept.VolumeMounts = append(kept.VolumeMounts, corev1.VolumeMount{Name: m.Name, MountPath: m.MountPath})
			}
		}
		spec.Containers = append(spec.Containers, kept)
	}
	pod.Spec = spec
	return pod, nil
}
