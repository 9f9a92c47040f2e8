package backup

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/keep"
	"github.com/slipway-dev/slipway/internal/kit/optional"
)

// NamedBudget is the budget of what Backups name and others make: every claim, Deployment and StatefulSet, and every class of
// volumes and of priority, as metadata: that it exists, its generation, and which WebApp a Deployment is of.
func NamedBudget(namespaces map[string]cache.Config) optional.Budget {
	budget := optional.Budget{Namespaces: namespaces, ByObject: map[client.Object]cache.ByObject{}}
	for _, kind := range Named(len(namespaces) > 0) {
		budget.ByObject[kind] = cache.ByObject{Transform: keepApp}
	}
	return budget
}

// keepApp keeps identity, the generation, and the label of a WebApp.
func keepApp(object any) (any, error) {
	app, generation := "", int64(0)
	if metadata, ok := object.(*metav1.PartialObjectMetadata); ok {
		app, generation = metadata.Labels[slipwayv1alpha1.LabelWebApp], metadata.Generation
	}
	kept, err := keep.Identity(object)
	metadata, ok := kept.(*metav1.PartialObjectMetadata)
	if !ok {
		return kept, err
	}
	metadata.Generation = generation
	if app != "" {
		metadata.Labels = map[string]string{slipwayv1alpha1.LabelWebApp: app}
	}
	return kept, err
}
