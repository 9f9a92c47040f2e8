package kit

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipway-dev/slipway/internal/metric"
)

// CountConditions registers a metric that counts the objects in a cache by condition and status. object is an empty object of
// their kind, and list an empty list. Until the cache has them all the metric has no series.
func CountConditions(cached cache.Cache, definition metric.Definition, object client.Object, list client.ObjectList, types ...string) {
	CountConditionsIn(crmetrics.Registry, cached, definition, object, list, types...)
}

// CountConditionsIn is CountConditions for a program with a registry of its own.
func CountConditionsIn(
	registry prometheus.Registerer, cached cache.Cache, definition metric.Definition, object client.Object, list client.ObjectList,
	types ...string,
) {
	conditions := func(ctx context.Context) ([][]metav1.Condition, bool) {
		all, known, err := cachedConditions(ctx, cached, object, list)
		if err != nil {
			logf.Log.Error(err, "A metric has no series", "metric", definition.Name)
		}
		return all, known
	}
	metric.Registered(registry, metric.NewByCondition(definition, types, conditions))
}

// cachedConditions are the conditions of each object in the cache. They are not known until it has them all.
func cachedConditions(
	ctx context.Context, cached cache.Cache, object client.Object, list client.ObjectList,
) (all [][]metav1.Condition, known bool, err error) {
	// A read waits until the cache has them all, which may be never: where the kind is not installed, or may not be read.
	informer, err := cached.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, false, fmt.Errorf("find the cache of %T: %w", object, err)
	}
	if !informer.HasSynced() {
		return nil, false, nil
	}
	objects, ok := list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, false, fmt.Errorf("%T cannot be copied", list)
	}
	if err := cached.List(ctx, objects, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, fmt.Errorf("list %T: %w", list, err)
	}
	err = meta.EachListItem(objects, func(item runtime.Object) error {
		object, ok := item.(interface{ GetConditions() []metav1.Condition })
		if !ok {
			return fmt.Errorf("%T has no conditions", item)
		}
		all = append(all, object.GetConditions())
		return nil
	})
	return all, err == nil, err
}
