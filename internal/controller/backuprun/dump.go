package backuprun

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// dump returns the container whose output is kept, and who it runs as.
func (r *Reconciler) dump(ctx context.Context, s *scope) (*mover.DumpContainer, mover.Identity, error) {
	if s.backup.Spec.Dump == nil {
		return nil, mover.Identity{}, outcome.Invalidf(slipwayv1alpha1.ReasonInvalid,
			"spec.dump of the Backup was removed while the run was under way")
	}
	source, err := mover.ParseSource(s.backup.Spec.Source)
	if err != nil {
		return nil, mover.Identity{}, outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.source of the Backup: %v", err)
	}
	if source.Kind == mover.SourceClaim {
		id, err := r.identityOfClaim(ctx, types.NamespacedName{Namespace: s.run.Namespace, Name: source.Name})
		return desired.Dump(s.backup, nil, nil), id, err
	}
	template, selector, err := r.template(ctx, types.NamespacedName{Namespace: s.run.Namespace, Name: source.Name}, source)
	if err != nil {
		return nil, mover.Identity{}, err
	}
	container := containerOf(template, s.backup.Spec.Dump.Container)
	if container == nil {
		return nil, mover.Identity{}, outcome.Invalidf(
			slipwayv1alpha1.ReasonInvalid, "%s has no container %q (spec.dump.container of the Backup)", source,
			s.backup.Spec.Dump.Container)
	}
	id, known := mover.IdentityIn(&corev1.Pod{Spec: template.Spec}, container.Name)
	if !known {
		// The image names the user, which only the kubelet knows.
		pods, err := r.podsOf(ctx, s.run.Namespace, selector)
		if err != nil {
			return nil, mover.Identity{}, err
		}
		id = mover.IdentityOfPods(container.Name, pods)
	}
	return desired.Dump(s.backup, container, template.Spec.ImagePullSecrets), id, nil
}

// template returns the pod template of a workload, and how its pods are found.
func (r *Reconciler) template(
	ctx context.Context, key types.NamespacedName, source mover.Source,
) (corev1.PodTemplateSpec, *metav1.LabelSelector, error) {
	if source.Kind == mover.SourceStatefulSet {
		set := &appsv1.StatefulSet{}
		err := r.source(ctx, key, source, set)
		return set.Spec.Template, set.Spec.Selector, err
	}
	deployment := &appsv1.Deployment{}
	err := r.source(ctx, key, source, deployment)
	if err == nil && source.Kind == mover.SourceWebApp && deployment.Labels[slipwayv1alpha1.LabelWebApp] != source.Name {
		err = outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonSourceNotFound, "there is no %s (spec.source of the Backup)", source)
	}
	return deployment.Spec.Template, deployment.Spec.Selector, err
}

// containerOf returns the container of a name, or the first one. Nil: there is none.
func containerOf(template corev1.PodTemplateSpec, name string) *corev1.Container {
	for i := range template.Spec.Containers {
		if name == "" || template.Spec.Containers[i].Name == name {
			return &template.Spec.Containers[i]
		}
	}
	return nil
}

// podsOf lists the pods of a workload, past the cache, which has only what Slipway made.
func (r *Reconciler) podsOf(ctx context.Context, namespace string, selector *metav1.LabelSelector) ([]corev1.Pod, error) {
	matching, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "the selector of the workload in spec.source of the Backup: %v", err)
	}
	all := func(*corev1.Pod) bool { return true }
	pods, err := transfer.Pods(ctx, r.kit.Live, namespace, all, client.MatchingLabelsSelector{Selector: matching})
	if err != nil {
		return nil, outcome.Classify("the pods of the workload", err)
	}
	return pods, nil
}

// identityOfClaim is who the pods run as that use a claim, which has to exist: its name may be a mistake.
func (r *Reconciler) identityOfClaim(ctx context.Context, key types.NamespacedName) (mover.Identity, error) {
	err := r.kit.Live.Get(ctx, key, &corev1.PersistentVolumeClaim{})
	switch {
	case apierrors.IsNotFound(err):
		return mover.Identity{}, outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonSourceNotFound,
			"there is no PersistentVolumeClaim %q (spec.source of the Backup)", key.Name)
	case err != nil:
		return mover.Identity{}, outcome.Classify("the claim in spec.source", err)
	}
	pods, err := transfer.Pods(ctx, r.kit.Live, key.Namespace, transfer.Mount(key.Name))
	if err != nil {
		return mover.Identity{}, outcome.Classify("the pods that use the volume", err)
	}
	return mover.IdentityOfClaim(key.Name, pods), nil
}
