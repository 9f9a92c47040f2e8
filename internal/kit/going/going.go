// Package going tells of namespaces that are being deleted. Kubernetes deletes the pods of such a namespace first, and everything
// else when they have ended. So an object in it is not deleted for as long as its pods take, and nothing can be made for it.
//
// An operator that is limited to namespaces has no right to watch them. It has no Namespaces, and hears of it when the API server
// refuses to make something.
package going

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Namespaces knows which namespaces are being deleted. Nil knows of none.
type Namespaces struct{ cache cache.Cache }

// New returns Namespaces that read the manager's cache.
func New(mgr ctrl.Manager) *Namespaces { return &Namespaces{cache: mgr.GetCache()} }

// Kind is a namespace as it is cached: its metadata.
func Kind() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// Check returns why nothing can be made for an object: its namespace is being deleted. An object that is in none has no such reason.
func (n *Namespaces) Check(ctx context.Context, object client.Object) error {
	if n == nil || object.GetNamespace() == "" {
		return nil
	}
	namespace := Kind()
	err := n.cache.Get(ctx, client.ObjectKey{Name: object.GetNamespace()}, namespace)
	switch {
	case apierrors.IsNotFound(err):
		return nil // it is new, or gone; the API server tells
	case err != nil:
		return fmt.Errorf("read the Namespace: %w", err)
	case namespace.DeletionTimestamp.IsZero():
		return nil
	}
	return outcome.Waitingf(
		0, slipwayv1alpha1.ReasonNamespaceTerminating, "namespace %q is being deleted, and this with it", object.GetNamespace(),
	)
}

// Source makes the deletion of a namespace an event of each object of a kind in it. list is an empty list of the kind, and reader
// reads it from a cache.
func (n *Namespaces) Source(reader client.Reader, list client.ObjectList) source.Source {
	if n == nil {
		return source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error { return nil })
	}
	return source.Kind(n.cache, client.Object(Kind()), handler.EnqueueRequestsFromMapFunc(objectsOf(reader, list)), predicate.Funcs{
		// At the start every object is looked at, and when it has gone there is none.
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	})
}

func objectsOf(reader client.Reader, list client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, namespace client.Object) (requests []reconcile.Request) {
		in, ok := list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil
		}
		if err := reader.List(ctx, in, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy); err != nil {
			logf.FromContext(ctx).V(1).Info("The objects of a namespace that is being deleted could not be read", "namespace",
				namespace.GetName(), "error", err.Error())
			return nil
		}
		_ = meta.EachListItem(in, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			}
			return nil
		})
		return requests
	}
}
