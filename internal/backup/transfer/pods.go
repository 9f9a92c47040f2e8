package transfer

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// podsAtOnce is how many pods are read in one request: a namespace may have any number of them, of 1.5 MB each.
const podsAtOnce = 50

// Pods lists those pods of a namespace that count, past the cache, which has only what Slipway made. Of what they run only
// that is kept by which they are judged.
func Pods(
	ctx context.Context, live client.Reader, namespace string, counts func(*corev1.Pod) bool, more ...client.ListOption,
) ([]corev1.Pod, error) {
	var kept []corev1.Pod
	page := &corev1.PodList{}
	for {
		options := append([]client.ListOption{
			client.InNamespace(namespace), client.Limit(podsAtOnce), client.Continue(page.Continue),
		}, more...)
		page = &corev1.PodList{}
		if err := live.List(ctx, page, options...); err != nil {
			return nil, err
		}
		for i := range page.Items {
			if pod := &page.Items[i]; counts(pod) {
				kept = append(kept, *reduced(pod))
			}
		}
		if page.Continue == "" {
			return kept, nil
		}
	}
}

// Mount returns what tells whether a pod has one of these claims.
func Mount(claims ...string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		for _, claim := range claims {
			if volume, _ := mover.VolumeOf(pod, claim); volume != "" {
				return true
			}
		}
		return false
	}
}

// reduced takes away what may be large and tells nothing.
func reduced(pod *corev1.Pod) *corev1.Pod {
	pod.ManagedFields = nil
	maps.DeleteFunc(pod.Annotations, func(name, _ string) bool { return name != slipwayv1alpha1.AnnotationBackupHooks })
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Command, c.Args, c.Env, c.EnvFrom, c.Lifecycle = nil, nil, nil, nil, nil
		}
	}
	return pod
}
