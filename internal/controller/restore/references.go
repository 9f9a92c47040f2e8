package restore

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// What a Restore names and somebody else makes is in no cache of the manager. It shares one of names with the Backups, which has
// workloads too.
//
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=get;list;watch

// watchNamed tells the controller of what comes and goes of what open Restores may name: claims of their namespace, and classes.
func (r *Reconciler) watchNamed(cached client.Reader, controller func(source.Source) error) error {
	comesOrGoes := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	for _, object := range r.named.Objects() {
		kind := object.GetObjectKind().GroupVersionKind()
		if kind.Group == "apps" {
			continue // a Restore names no workload
		}
		referrers := watch.Referrers{
			Reader: cached, List: &slipwayv1alpha1.RestoreList{}, Index: indexOpen,
			SameNamespace: kind == corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
			Values:        func(client.Object) []string { return []string{open} },
		}
		if err := r.named.Watch(controller, object, referrers.Handler(), comesOrGoes); err != nil {
			return err
		}
	}
	return nil
}

// findStorageClass looks for the class of a volume that is to be made. Without it a pod would wait, and not say for what.
func (r *Reconciler) findStorageClass(ctx context.Context, s *scope) error {
	class := s.restore.Spec.Target.Create.StorageClassName
	if class == nil || *class == "" {
		return nil // an empty name is that of no class
	}
	kind := storagev1.SchemeGroupVersion.WithKind("StorageClass")
	return r.findClass(ctx, kind, *class, slipwayv1alpha1.ReasonStorageClassNotFound, "spec.target.create.storageClassName")
}

// findPriorityClass looks for the class of the pod, which would not be made without it.
func (r *Reconciler) findPriorityClass(ctx context.Context, s *scope) error {
	mover := s.restore.Spec.Mover
	if mover == nil || mover.PriorityClassName == "" {
		return nil
	}
	kind := schedulingv1.SchemeGroupVersion.WithKind("PriorityClass")
	return r.findClass(ctx, kind, mover.PriorityClassName, slipwayv1alpha1.ReasonPriorityClassNotFound, "spec.mover.priorityClassName")
}

func (r *Reconciler) findClass(ctx context.Context, kind schema.GroupVersionKind, name, reason, field string) error {
	class := &metav1.PartialObjectMetadata{}
	class.SetGroupVersionKind(kind)
	if !r.named.Has(class) {
		return nil // an operator of some namespaces may not read what is in none
	}
	switch err := r.named.Get(ctx, types.NamespacedName{Name: name}, class); {
	case apierrors.IsNotFound(err):
		return outcome.Waitingf(0, reason, "there is no %s %q (%s)", kind.Kind, name, field)
	case err != nil:
		return fmt.Errorf("read the %s %q: %w", kind.Kind, name, err)
	default:
		return nil
	}
}
