package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
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
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// What a Backup names is looked for when it is named, and not when a run needs it: a schedule may let months go by before that.
// What somebody else makes is in no cache of the manager, so there is one of its own, with names alone.
//
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=get;list;watch

// Named are the kinds, as metadata, of what Backups and Restores name and others make. With limited those are left out that are in no
// namespace.
func Named(limited bool) []client.Object {
	kinds := []client.Object{
		metadataOf(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")),
		metadataOf(appsv1.SchemeGroupVersion.WithKind("Deployment")),
		metadataOf(appsv1.SchemeGroupVersion.WithKind("StatefulSet")),
	}
	if limited {
		return kinds
	}
	return append(kinds,
		metadataOf(storagev1.SchemeGroupVersion.WithKind("StorageClass")),
		metadataOf(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass")))
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// watchNamed tells the controller of what comes and goes of what Backups name.
func (r *Reconciler) watchNamed(cached client.Reader, controller func(source.Source) error) error {
	// Whether it exists, and of a workload what its containers are called.
	matters := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	}}
	for _, object := range r.named.Objects() {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		referrers := watch.Referrers{
			Reader: cached, List: &slipwayv1alpha1.BackupList{}, Index: indexNamed,
			Values: func(found client.Object) []string {
				return []string{namedValue(kind, found.GetNamespace(), found.GetName())}
			},
		}
		if err := r.named.Watch(controller, object, referrers.Handler(), matters); err != nil {
			return err
		}
	}
	return nil
}

// reference is an object, as metadata, that a spec names.
type reference struct {
	object *metav1.PartialObjectMetadata
	reason string
	// called is what messages call it, and field the field that names it.
	called, field string
	// app is the WebApp whose it has to be. Empty: it may be anybody's.
	app string
}

// namedValue is how the index finds Backups by what they name.
func namedValue(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// namedIndex are the values of a Backup in the index.
func namedIndex(object client.Object) []string {
	backup, ok := object.(*slipwayv1alpha1.Backup)
	if !ok {
		return nil
	}
	var values []string
	for _, ref := range namedBy(backup) {
		values = append(values, namedValue(ref.object.Kind, ref.object.Namespace, ref.object.Name))
	}
	return values
}

// namedBy are the objects that a Backup names, but for Secrets and ConfigMaps.
func namedBy(backup *slipwayv1alpha1.Backup) []reference {
	var list []reference
	name := func(kind schema.GroupVersionKind, namespace, name, reason, called, field string) {
		object := metadataOf(kind)
		object.Namespace, object.Name = namespace, name
		list = append(list, reference{object: object, reason: reason, called: called, field: field})
	}
	spec, claim := backup.Spec, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	if source, err := mover.ParseSource(spec.Source); err == nil {
		kind := claim
		switch source.Kind {
		case mover.SourceStatefulSet:
			kind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
		case mover.SourceDeployment, mover.SourceWebApp:
			kind = appsv1.SchemeGroupVersion.WithKind("Deployment")
		}
		name(kind, backup.Namespace, source.Name, slipwayv1alpha1.ReasonSourceNotFound, source.String(), "spec.source")
		if source.Kind == mover.SourceWebApp {
			list[0].app = source.Name
		}
	}
	if place, err := mover.ParseDestination(spec.Destination); err == nil && place.Claim != "" {
		name(claim, backup.Namespace, place.Claim, slipwayv1alpha1.ReasonDestinationNotFound,
			fmt.Sprintf("PersistentVolumeClaim %q", place.Claim), "spec.destination")
	}
	if spec.Mover != nil && spec.Mover.PriorityClassName != "" {
		name(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), "", spec.Mover.PriorityClassName,
			slipwayv1alpha1.ReasonPriorityClassNotFound, fmt.Sprintf("PriorityClass %q", spec.Mover.PriorityClassName),
			"spec.mover.priorityClassName")
	}
	if drill := backup.Drill(); drill != nil && drill.Scratch != nil && drill.Scratch.StorageClassName != nil {
		name(storagev1.SchemeGroupVersion.WithKind("StorageClass"), "", *drill.Scratch.StorageClassName,
			slipwayv1alpha1.ReasonStorageClassNotFound, fmt.Sprintf("StorageClass %q", *drill.Scratch.StorageClassName),
			"spec.verify.drill.scratch.storageClassName")
	}
	return list
}

// configOf are the Secrets and ConfigMaps that a Backup names and cannot do without. The password's is not among them where the
// operator makes it, nor are those of mover.imagePullSecrets: pods start without them, so a condition of its own tells of them.
func configOf(backup *slipwayv1alpha1.Backup) []transfer.Reference {
	var list []transfer.Reference
	if place, err := mover.ParseDestination(backup.Spec.Destination); err == nil && place.Bucket != "" {
		list = append(list, transfer.Credentials(backup.CredentialsSecret(), "spec.credentials"))
	}
	if backup.Spec.Encryption != nil {
		list = append(list, transfer.Encryption(backup.EncryptionSecret(), "spec.encryption"))
	}
	if backup.Spec.Dump == nil {
		return list
	}
	for i, from := range backup.Spec.Dump.EnvFrom {
		field := fmt.Sprintf("spec.dump.envFrom[%d]", i)
		switch {
		case from.Optional:
		case from.SecretRef != nil:
			list = append(list, transfer.Reference{Name: from.SecretRef.Name, Field: field, Keys: from.Keys})
		case from.ConfigMapRef != nil:
			list = append(list, transfer.Reference{ConfigMap: true, Name: from.ConfigMapRef.Name, Field: field, Keys: from.Keys})
		}
	}
	return list
}

// pullSecretsOf are the Secrets that the images of pods are pulled with.
func pullSecretsOf(backup *slipwayv1alpha1.Backup) []slipwayv1alpha1.LocalReference {
	if backup.Spec.Mover == nil {
		return nil
	}
	return backup.Spec.Mover.ImagePullSecrets
}

// configIndex finds Backups by the Secrets, or by the ConfigMaps, that they name. The password's Secret is among them, whoever
// makes it.
func configIndex(configMaps bool) client.IndexerFunc {
	return func(object client.Object) []string {
		backup, ok := object.(*slipwayv1alpha1.Backup)
		if !ok {
			return nil
		}
		var names []string
		if !configMaps {
			names = append(names, backup.EncryptionSecret())
			names = append(names, pullsecret.Names(pullSecretsOf(backup))...)
		}
		for _, ref := range configOf(backup) {
			if ref.ConfigMap == configMaps && (configMaps || ref.Name != backup.EncryptionSecret()) {
				names = append(names, ref.Name)
			}
		}
		return names
	}
}

// resolve looks for everything that the spec names, and notes what is missing. An error is one of a request, after which it is
// looked for again.
func (r *Reconciler) resolve(ctx context.Context, s *scope) error {
	var all []*outcome.Error
	for _, ref := range namedBy(s.backup) {
		if !r.named.Has(ref.object) {
			continue // an operator of some namespaces may not read what is in none
		}
		missing, err := r.missing(ctx, ref)
		if err != nil {
			return err
		}
		if missing {
			all = append(all, outcome.Waitingf(0, ref.reason, "there is no %s (%s)", ref.called, ref.field))
		}
	}
	containers, err := r.missingContainers(ctx, s.backup)
	if err != nil {
		return err
	}
	all = append(all, containers...)
	config, err := r.references.Missing(ctx, s.backup.Namespace, configOf(s.backup))
	all = append(all, config...)
	if len(all) == 0 {
		return err
	}
	words := make([]string, 0, len(all))
	for _, missing := range all {
		words = append(words, missing.Message)
	}
	s.missing = outcome.Waitingf(0, all[0].Reason, "%s", strings.Join(words, "; "))
	return err
}

// missing reports whether there is no such object.
func (r *Reconciler) missing(ctx context.Context, ref reference) (bool, error) {
	err := r.named.Get(ctx, types.NamespacedName{Namespace: ref.object.Namespace, Name: ref.object.Name}, ref.object)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, errors.Join(fmt.Errorf("read the %s", ref.called), err)
	default:
		return ref.app != "" && ref.object.Labels[slipwayv1alpha1.LabelWebApp] != ref.app, nil
	}
}
