package kindrole

import (
	"context"
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/monitor/selection"
)

// What is watched as metadata. The operator does not know the types.
var (
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	serviceKind    = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
)

// An APIService with this label and value is made, and kept, for definitions. A built-in one has another value, and one that
// somebody installed has none. The name is from k8s.io/kube-aggregator, pkg/controllers/autoregister.
const (
	managedLabel         = "kube-aggregator.kubernetes.io/automanaged"
	managedByDefinitions = "true"
)

// Options configures the controller.
type Options struct {
	// Include and Exclude choose the kinds that the monitor may read. They are patterns: see selection.New. Default: all.
	Include, Exclude []string
	// NewQueue replaces the queue. Default: outcome.NewFairQueue.
	NewQueue outcome.NewQueue
	// Clock tells the time. Default: the system's.
	Clock clock.PassiveClock
}

// Setup registers the controller with the manager. Only the leader writes.
func Setup(mgr ctrl.Manager, options Options) error {
	kinds, err := selection.New(options.Include, options.Exclude)
	if err != nil {
		return err
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	reconciler := &Reconciler{client: mgr.GetClient(), kinds: kinds, clock: options.Clock, metrics: newMetrics()}
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: Name}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("monitor-kinds").
		For(&rbacv1.ClusterRole{}).
		WatchesMetadata(object(definitionKind), one, builder.WithPredicates(appearsOrGoes())).
		WatchesMetadata(object(serviceKind), one, builder.WithPredicates(appearsOrGoes())).
		// There is one object.
		WithOptions(outcome.ControllerOptions(1, options.NewQueue)).
		Complete(reconciler)
}

// Cached is what the controller keeps in the manager's cache: the one ClusterRole, and of all definitions and APIServices the
// name and a label. 2,000 definitions are about a megabyte.
func Cached() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&rbacv1.ClusterRole{}: {
			Field:     fields.OneTermEqualSelector("metadata.name", Name),
			Transform: cache.TransformStripManagedFields(),
		},
		object(definitionKind): {Transform: keepName},
		object(serviceKind):    {Transform: keepName},
	}
}

// appearsOrGoes lets through what changes the rules. The status of definitions changes often.
func appearsOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	}}
}

var _ toolscache.TransformFunc = keepName

// keepName keeps identity and the label.
func keepName(object any) (any, error) {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := metav1.ObjectMeta{Name: metadata.Name, UID: metadata.UID, ResourceVersion: metadata.ResourceVersion}
	if value, ok := metadata.Labels[managedLabel]; ok {
		kept.Labels = map[string]string{managedLabel: value}
	}
	metadata.ObjectMeta = kept
	return metadata, nil
}

func object(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(kind)
	return metadata
}

func listOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	return list
}
