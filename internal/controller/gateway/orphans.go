package gateway

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// orphans retracts the status of a ListenerSet that no Gateway has any more, because it was deleted, or names none. Which
// Gateway it had nobody knows then. Of one that names a Gateway the controller of Gateways speaks.
type orphans struct {
	// kit is its own: what is in the way of a Gateway is not in the way of a set of the same name.
	kit *kit.Tools
	of  *Reconciler
}

// Reconcile looks at one ListenerSet.
func (o *orphans) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r := o.of
	if !r.kinds.running() || !r.kinds.objects.Watches(req.Namespace) {
		return o.kit.Forget(ctx, req.NamespacedName)
	}
	set := &gatewayv1.ListenerSet{}
	err := r.kinds.objects.Get(ctx, req.NamespacedName, set)
	switch {
	case apierrors.IsNotFound(err):
		set = nil
	case err != nil:
		return o.kit.Abort(req.NamespacedName, fmt.Errorf("read the ListenerSet: %w", err))
	default:
		if _, names := gatewayapi.GatewayOfSet(set); names {
			return o.kit.Forget(ctx, req.NamespacedName)
		}
	}
	writes, err := r.releaseSet(ctx, req.NamespacedName, set)
	if err := errors.Join(err, r.writeAll(writes)); err != nil {
		return o.kit.Abort(req.NamespacedName, err)
	}
	return o.kit.Forget(ctx, req.NamespacedName)
}

// setsWithEntries are the ListenerSets that a route has an entry of ours for.
func setsWithEntries(_ context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, entry := range *parentStatuses(object) {
		if name, is := gatewayapi.SetOf(entry.ParentRef, object.GetNamespace()); is && entry.ControllerName == Controller {
			requests = append(requests, reconcile.Request{NamespacedName: name})
		}
	}
	return requests
}

// setupOrphans registers what retracts statuses.
func setupOrphans(mgr ctrl.Manager, options Options, of *Reconciler) error {
	known := of.kinds.objects
	// It has no watch but those on kinds that the cluster need not have, which begin later.
	with := outcome.ControllerOptions(1, options.NewQueue)
	with.Reconciler = &orphans{kit: kit.New(mgr, kit.Options{FieldManager: FieldManager, Clock: options.Clock}), of: of}
	built, err := controller.New("listenerset", mgr, with)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	through := handler.EnqueueRequestsFromMapFunc(setsWithEntries)
	return errors.Join(
		known.Watch(built.Watch, &gatewayv1.ListenerSet{}, &handler.EnqueueRequestForObject{}),
		of.kinds.watchRoutes(built.Watch, through),
	)
}
