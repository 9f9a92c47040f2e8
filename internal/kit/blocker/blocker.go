// Package blocker watches the objects that are in the way of a child: somebody else's of
// the same name, or one that is going. The caches show only Slipway's own, so nothing else
// tells when they have gone.
//
// Each is watched by its name, as metadata, and only as long as a reconcile says that it is in
// the way. One that is not watched, because there are too many, is found gone by the
// recheck that its error asks for.
package blocker

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipway-dev/slipway/internal/kit/fair"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// DefaultLimit bounds how many objects are watched: each costs a request that stays open
// and about 50 KB. Whatever the owners of one namespace have in the way, there is a place for
// those of another (fair.Share).
const DefaultLimit = 100

// Watches are the objects that are in the way of the children of one kind of owner.
type Watches struct {
	client metadata.Interface
	mapper meta.RESTMapper
	limit  int
	// identify says what of an object counts. If it is another one, the owner is told.
	identify func(object any) identity

	mutex   sync.Mutex
	notify  func(owner types.NamespacedName)
	watched map[place]context.CancelFunc
	closed  bool
	running sync.WaitGroup
}

// place is one object in the way of one owner.
type place struct {
	owner  types.NamespacedName
	kind   schema.GroupVersionKind
	object types.NamespacedName
}

// New returns Watches that watch nothing. limit is how many objects they watch at most;
// 0: DefaultLimit.
func New(config *rest.Config, client *http.Client, mapper meta.RESTMapper, limit int) (*Watches, error) {
	made, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), client)
	if err != nil {
		return nil, fmt.Errorf("make the client of metadata: %w", err)
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	return &Watches{client: made, mapper: mapper, limit: limit, identify: identityOf, watched: map[place]context.CancelFunc{}}, nil
}

// Setup returns Watches that run with the manager.
func Setup(mgr ctrl.Manager) (*Watches, error) {
	watches, err := New(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetRESTMapper(), 0)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(watches); err != nil {
		return nil, fmt.Errorf("add what watches objects in the way: %w", err)
	}
	return watches, nil
}

// SetupChanges returns Watches of the manager that tell of any change of an object, and not only when it goes.
func SetupChanges(mgr ctrl.Manager) (*Watches, error) {
	watches, err := Setup(mgr)
	if err == nil {
		watches.identify = versionOf
	}
	return watches, err
}

// Notify sets who is told that an object in the way of an owner has gone, or has another
// owner now. It must not block.
func (w *Watches) Notify(notify func(owner types.NamespacedName)) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.notify = notify
}

// Source makes what is noticed an event of the owner.
func (w *Watches) Source() source.Source { return watch.Notices(w.Notify) }

// Keep makes these the objects in the way of an owner that are watched, and no others.
// Each has its kind, and is as it was seen. The values of the context live on in the
// goroutines, its end does not end them. Nil Watches watch nothing.
func (w *Watches) Keep(ctx context.Context, owner types.NamespacedName, objects []*metav1.PartialObjectMetadata) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	wanted := map[place]*metav1.PartialObjectMetadata{}
	for _, object := range objects {
		name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
		wanted[place{owner: owner, kind: object.GroupVersionKind(), object: name}] = object
	}
	for at, stop := range w.watched {
		if at.owner == owner && wanted[at] == nil {
			stop()
			delete(w.watched, at)
		}
	}
	for at, object := range wanted {
		if w.watched[at] != nil || w.closed || !fair.Share(w.held(owner.Namespace), w.limit-len(w.watched)) {
			continue
		}
		w.start(ctx, at, object)
	}
}

// held is how many objects are watched for the owners of a namespace. The mutex is held.
func (w *Watches) held(namespace string) (n int) {
	for at := range w.watched {
		if at.owner.Namespace == namespace {
			n++
		}
	}
	return n
}

// start begins to watch. The mutex is held.
func (w *Watches) start(ctx context.Context, at place, seen *metav1.PartialObjectMetadata) {
	mapping, err := w.mapper.RESTMapping(at.kind.GroupKind(), at.kind.Version)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Watch an object in the way", "object", at.object)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.watched[at] = cancel
	w.running.Go(func() { w.run(ctx, mapping.Resource, at, w.identify(seen)) })
}

// run watches one object until the context ends.
func (w *Watches) run(ctx context.Context, resource schema.GroupVersionResource, at place, last identity) {
	informer := metadatainformer.NewFilteredMetadataInformer(w.client, resource, at.object.Namespace, 0, toolscache.Indexers{},
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("metadata.name", at.object.Name).String()
		}).Informer()
	// One goroutine calls these, so that they share what was seen last.
	look := func(now identity) {
		if !last.same(now) {
			last = now
			w.wake(at.owner)
		}
	}
	var there atomic.Bool
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			there.Store(true)
			look(w.identify(object))
		},
		UpdateFunc: func(_, object any) { look(w.identify(object)) },
		DeleteFunc: func(any) { look(identity{}) },
	})
	if err != nil {
		logf.FromContext(ctx).Error(err, "Watch an object in the way", "object", at.object)
		return
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		// It may have gone before the watch began. The store does not tell: it is empty, too, if the
		// object went after the watch began, and then the handler tells.
		if toolscache.WaitForCacheSync(ctx.Done(), handler.HasSynced) && !there.Load() {
			w.wake(at.owner)
		}
	})
	informer.RunWithContext(ctx)
	waiting.Wait()
}

// identity is what decides whether an object is in the way. The rest of it may change all
// the time.
type identity struct {
	uid    types.UID
	going  bool
	owners []metav1.OwnerReference
	// version is empty where it does not count.
	version string
}

func (i identity) same(other identity) bool {
	return i.uid == other.uid && i.version == other.version && i.going == other.going && equality.Semantic.DeepEqual(i.owners, other.owners)
}

// identityOf returns that of an object of a watch.
func identityOf(object any) identity {
	metadata, ok := object.(metav1.Object)
	if !ok {
		return identity{}
	}
	return identity{uid: metadata.GetUID(), going: !metadata.GetDeletionTimestamp().IsZero(), owners: metadata.GetOwnerReferences()}
}

func (w *Watches) wake(owner types.NamespacedName) {
	w.mutex.Lock()
	notify := w.notify
	w.mutex.Unlock()
	if notify != nil {
		notify(owner)
	}
}

// Start runs until the context ends and then ends every watch. It implements the
// manager's Runnable.
func (w *Watches) Start(ctx context.Context) error {
	<-ctx.Done()
	w.mutex.Lock()
	w.closed = true
	for at, stop := range w.watched {
		stop()
		delete(w.watched, at)
	}
	w.mutex.Unlock()
	w.running.Wait()
	return nil
}

// NeedLeaderElection tells the manager that only the leader watches: it alone acts.
func (w *Watches) NeedLeaderElection() bool { return true }

// versionOf is the identity of an object of which any change counts.
func versionOf(object any) identity {
	metadata, ok := object.(metav1.Object)
	if !ok {
		return identity{}
	}
	return identity{uid: metadata.GetUID(), version: metadata.GetResourceVersion()}
}
