package watch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Index is how the cache finds objects of a kind again.
type Index struct {
	// Object is of the kind. Of one that is cached as metadata it is a PartialObjectMetadata.
	Object client.Object
	// Name is what the index is called in queries.
	Name string
	// Values are those by which an object is found.
	Values client.IndexerFunc
}

// AddIndexes adds indexes to the manager's cache, before it starts.
func AddIndexes(mgr ctrl.Manager, indexes ...Index) error {
	for _, index := range indexes {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), index.Object, index.Name, index.Values); err != nil { //nolint:forbidigo // registering an index is not part of a request
			return fmt.Errorf("index %T by %s: %w", index.Object, index.Name, err)
		}
	}
	return nil
}

// LabelIndex finds objects by the value of a label.
func LabelIndex(label string) client.IndexerFunc {
	return func(object client.Object) []string {
		if value := object.GetLabels()[label]; value != "" {
			return []string{value}
		}
		return nil
	}
}

// ByLabel maps an object to the owner that its label names, in its namespace. It is for objects that others control, such
// as pods, and for those that nobody controls.
func ByLabel(label string) handler.EventHandler {
	return By(func(object client.Object) string { return object.GetLabels()[label] })
}

// ByLabelInCluster is ByLabel for owners that are in no namespace: it does not matter in which one the object is.
func ByLabelInCluster(label string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return requestFor("", object.GetLabels()[label])
	})
}

// By maps an object to the one that it names, in its namespace. An empty name is none.
func By(name func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return requestFor(object.GetNamespace(), name(object))
	})
}

func requestFor(namespace, name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// Referrers maps an object to those that refer to it.
type Referrers struct {
	// Reader reads from the cache.
	Reader client.Reader
	// List is an empty list of their kind.
	List client.ObjectList
	// Index finds them.
	Index string
	// Values are those in the index that mean an object.
	Values func(client.Object) []string
	// SameNamespace reports whether they are in the namespace of the object.
	SameNamespace bool
}

// Map returns requests for those that refer to an object.
func (r Referrers) Map(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, value := range r.Values(object) {
		options := []client.ListOption{
			client.MatchingFields{r.Index: value}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency,
		}
		if r.SameNamespace {
			options = append(options, client.InNamespace(object.GetNamespace()))
		}
		list, ok := r.List.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil
		}
		if err := r.Reader.List(ctx, list, options...); err != nil {
			// When the operator ends this is no news: the next one looks at everything.
			if ctx.Err() == nil {
				logf.FromContext(ctx).Error(err, "An event is lost: those that refer to the object are not reconciled",
					"object", client.ObjectKeyFromObject(object), "index", r.Index)
			}
			return nil
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if referrer, ok := item.(client.Object); ok {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(referrer)})
			}
			return nil
		})
	}
	return requests
}

// Handler enqueues those that refer to an object.
func (r Referrers) Handler() handler.EventHandler { return handler.EnqueueRequestsFromMapFunc(r.Map) }

// Notices makes what something else notices an event of an owner. notify is how that is told whom to tell.
func Notices(notify func(wake func(owner types.NamespacedName))) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		notify(func(owner types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: owner}) })
		return nil
	})
}
