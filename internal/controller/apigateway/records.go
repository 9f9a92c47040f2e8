package apigateway

import (
	"context"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// ofRecord enqueues whom the record of a host is about: who asks for the host and does not have it, and who has it and is
// gone, which nobody else would find after a restart.
func ofRecord(reader client.Reader) handler.EventHandler {
	values := func(object client.Object) []string {
		if lease, ok := object.(*coordinationv1.Lease); ok {
			if index := hosts.IndexOf(lease); index != "" {
				return []string{index}
			}
		}
		return nil
	}
	asking := watch.Referrers{Reader: reader, List: &slipwayv1alpha1.APIGatewayList{}, Index: indexClaim, Values: values}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		lease, ok := object.(*coordinationv1.Lease)
		if !ok {
			return
		}
		holders := hosts.Holders(lease)
		for _, request := range asking.Map(ctx, lease) {
			if !slices.ContainsFunc(holders, func(h hosts.Holder) bool { return h.Key() == request.NamespacedName }) {
				q.Add(request)
			}
		}
		for _, holder := range holders {
			// Of a namespace that is not watched there is another error.
			err := reader.Get(ctx, holder.Key(), &slipwayv1alpha1.APIGateway{}, client.DisableReadYourWritesConsistency)
			if apierrors.IsNotFound(err) {
				q.Add(reconcile.Request{NamespacedName: holder.Key()})
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			for _, request := range asking.Map(ctx, e.Object) {
				q.Add(request)
			}
		},
	}
}
