package backup

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// container is one that a spec names, and the field that does. A hook runs in a pod as it is, so an admission webhook may have added
// its container.
type container struct {
	name, field string
	hook        bool
}

// containersOf are the containers that a Backup names.
func containersOf(spec *slipwayv1alpha1.BackupSpec) []container {
	var list []container
	if spec.Dump != nil && spec.Dump.Container != "" {
		list = append(list, container{spec.Dump.Container, "spec.dump.container", false})
	}
	if spec.Hooks == nil {
		return list
	}
	if before := spec.Hooks.Before; before != nil && before.Container != "" {
		list = append(list, container{before.Container, "spec.hooks.before.container", true})
	}
	if after := spec.Hooks.After; after != nil && after.Container != "" {
		list = append(list, container{after.Container, "spec.hooks.after.container", true})
	}
	return list
}

// templates remembers what the containers of workloads are called. The cache, which has no templates, says which generation there
// is: one is read past it, once.
type templates struct {
	live  client.Reader
	known *lru.Cache
}

// template is what is remembered of a workload, by its UID.
type template struct {
	generation int64
	containers []string
	labels     map[string]string
}

// missingContainers are the containers that the template of a workload does not have. Of a claim nobody knows which pods will use
// it, so the run tells.
func (r *Reconciler) missingContainers(ctx context.Context, backup *slipwayv1alpha1.Backup) ([]*outcome.Error, error) {
	wanted, named := containersOf(&backup.Spec), namedBy(backup)
	source, err := mover.ParseSource(backup.Spec.Source)
	if len(wanted) == 0 || err != nil || source.Kind == mover.SourceClaim {
		return nil, nil
	}
	workload := named[0] // the source
	if gone, err := r.missing(ctx, workload); gone || err != nil {
		return nil, err
	}
	has, err := r.templates.containers(ctx, workload.object)
	if apierrors.IsNotFound(err) {
		return nil, nil // it is going: the cache tells so soon
	}
	if err != nil {
		return nil, outcome.Classify(workload.called, err)
	}
	var all []*outcome.Error
	for _, c := range wanted {
		if slices.Contains(has.containers, c.name) {
			continue
		}
		added, err := r.isAdded(ctx, backup.Namespace, has, c)
		if err != nil {
			return nil, outcome.Classify("the pods of "+workload.called, err)
		}
		if !added {
			all = append(all,
				outcome.Waitingf(
					0, slipwayv1alpha1.ReasonContainerNotFound, "%s has no container %q (%s)", workload.called, c.name, c.field,
				))
		}
	}
	return all, nil
}

// mostPods is how many pods of a workload are looked at for a container that its template does not have.
const mostPods = 20

// isAdded reports whether pods have the container of a hook that their template does not have.
func (r *Reconciler) isAdded(ctx context.Context, namespace string, of template, c container) (bool, error) {
	if !c.hook || len(of.labels) == 0 {
		return false, nil
	}
	pods := &corev1.PodList{}
	if err := r.kit.Live.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels(of.labels),
		client.Limit(mostPods)); err != nil {
		return false, err
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Containers, func(its corev1.Container) bool { return its.Name == c.name })
	}), nil
}

func (t *templates) containers(ctx context.Context, workload *metav1.PartialObjectMetadata) (template, error) {
	if known, ok := t.known.Get(workload.UID); ok && known.(template).generation == workload.Generation {
		return known.(template), nil
	}
	read, err := t.read(ctx, workload.Kind, client.ObjectKeyFromObject(workload))
	if err != nil {
		return template{}, err
	}
	names := make([]string, 0, len(read.Spec.Containers))
	for i := range read.Spec.Containers {
		names = append(names, read.Spec.Containers[i].Name)
	}
	has := template{workload.Generation, names, read.Labels}
	t.known.Add(workload.UID, has)
	return has, nil
}

func (t *templates) read(ctx context.Context, kind string, name types.NamespacedName) (corev1.PodTemplateSpec, error) {
	if kind == "StatefulSet" {
		set := &appsv1.StatefulSet{}
		err := t.live.Get(ctx, name, set)
		return set.Spec.Template, err
	}
	deployment := &appsv1.Deployment{}
	err := t.live.Get(ctx, name, deployment)
	return deployment.Spec.Template, err
}
