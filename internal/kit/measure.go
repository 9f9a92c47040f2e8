package kit

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipway-dev/slipway/internal/kit/metric"
)

// CountConditions registers a metric that counts the objects in the cache of a reader by condition and status. list is an
// empty list of their kind.
func CountConditions(reader client.Reader, definition metric.Definition, list client.ObjectList, types ...string) {
	conditions := func(ctx context.Context) ([][]metav1.Condition, error) {
		objects, ok := list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T cannot be copied", list)
		}
		if err := reader.List(ctx, objects, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
			return nil, err
		}
		var all [][]metav1.Condition
		err := meta.EachListItem(objects, func(item runtime.Object) error {
			object, ok := item.(interface{ GetConditions() []metav1.Condition })
			if !ok {
				return fmt.Errorf("%T has no conditions", item)
			}
			all = append(all, object.GetConditions())
			return nil
		})
		return all, err
	}
	metric.Registered(crmetrics.Registry, metric.NewByCondition(definition, types, conditions))
}
