// Package keep says what of an object is kept in a cache. What is left out costs no memory, and nobody can rely on it. A
// controller that keeps more than these do has a function of its own beside its budget.
package keep

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// fieldManagerPrefix is common to the field managers of Slipway's controllers.
const fieldManagerPrefix = "slipway-"

// Ours selects what Slipway manages.
func Ours() labels.Selector {
	return labels.SelectorFromSet(labels.Set{slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway})
}

var _ toolscache.TransformFunc = OwnManagedFields

// OwnManagedFields drops what other field managers own: about a third of an object.
func OwnManagedFields(object any) (any, error) {
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

// Metadata keeps identity, labels, owners and the named annotations.
func Metadata(annotations ...string) toolscache.TransformFunc {
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

// Deletion keeps identity, and since when an object is being deleted.
func Deletion(object any) (any, error) {
	deleted := (*metav1.Time)(nil)
	if o, ok := object.(metav1.Object); ok {
		deleted = o.GetDeletionTimestamp()
	}
	kept, err := Identity(object)
	if o, ok := kept.(metav1.Object); ok {
		o.SetDeletionTimestamp(deleted)
	}
	return kept, err
}

// Labels keeps identity and labels.
func Labels(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	o.SetAnnotations(nil)
	o.SetManagedFields(nil)
	return object, nil
}

// Identity keeps name, namespace, UID and version.
func Identity(object any) (any, error) {
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
