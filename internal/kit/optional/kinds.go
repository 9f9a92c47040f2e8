package optional

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// searchInterval is how often every operator looks for the kinds while the cluster does not have them all.
const searchInterval = time.Minute

// Budget is what is kept in memory of the kinds.
type Budget struct {
	// Namespaces are the ones to watch. None: all.
	Namespaces map[string]cache.Config
	// ByObject are the kinds, with what is kept of each.
	ByObject map[client.Object]cache.ByObject
}

// Watches reports whether objects of a namespace can be read.
func (b Budget) Watches(namespace string) bool {
	_, named := b.Namespaces[namespace]
	return named || len(b.Namespaces) == 0
}

// Options says which kinds there may be.
type Options struct {
	// Budget has the kinds.
	Budget Budget
	// Required are the kinds without which none of the others is looked for.
	Required []client.Object
	// Older are earlier versions, by the kind. Such a version is read while the cluster does not have the kind itself. The
	// budget has both.
	Older map[client.Object]client.Object
	// MayBeForbidden asks whether the kinds may be read before they are. One that may not is like one that the cluster does not
	// have. Default: the rights are there.
	MayBeForbidden bool
	// OnDemand leaves all alone until Begin. Default: the search begins with the operator.
	OnDemand bool
	// NewCache makes the caches. Default: cache.New.
	NewCache cache.NewCacheFunc
}

// Kinds are the kinds that a cluster need not have. It reads them: of a kind that the cluster does not have there is no object.
type Kinds struct {
	mgr      ctrl.Manager
	options  Options
	required map[schema.GroupVersionKind]bool
	kinds    map[schema.GroupVersionKind]*kind
	older    map[schema.GroupVersionKind]schema.GroupVersionKind
	begin    chan struct{} // closed when the search is to begin
	once     sync.Once

	// running are those that were found, from when their caches run. A read must not wait for a search, so it is
	// read without the mutex. Nil: none has been found yet.
	running atomic.Pointer[map[schema.GroupVersionKind]client.Client]

	mutex  sync.Mutex                            // guards the search
	caches map[schema.GroupVersionKind]*oneCache // of those that were found
	logged map[notice]bool
}

// notice is what was said of a kind: that it is missing, forbidden, or an older version.
type notice struct {
	of   schema.GroupVersionKind
	what string
}

// kind is one of them.
type kind struct {
	object  client.Object
	budget  cache.ByObject
	indexes map[string]client.IndexerFunc
	watches []watch
}

// watch is who is told of the events of a kind.
type watch struct {
	controller func(source.Source) error
	handler    handler.EventHandler
	predicates []predicate.Predicate
}

var (
	_ manager.LeaderElectionRunnable = (*Kinds)(nil)
	_ client.Reader                  = (*Kinds)(nil)
)

// New returns kinds that are not looked for yet. Indexes and watches are added before Setup.
func New(mgr ctrl.Manager, options Options) (*Kinds, error) {
	if options.NewCache == nil {
		options.NewCache = cache.New
	}
	k := &Kinds{
		mgr: mgr, options: options, begin: make(chan struct{}),
		required: map[schema.GroupVersionKind]bool{}, kinds: map[schema.GroupVersionKind]*kind{},
		older:  map[schema.GroupVersionKind]schema.GroupVersionKind{},
		caches: map[schema.GroupVersionKind]*oneCache{}, logged: map[notice]bool{},
	}
	for object, budget := range options.Budget.ByObject {
		of, err := k.kindOf(object)
		if err != nil {
			return nil, err
		}
		k.kinds[of] = &kind{object: object, budget: budget, indexes: map[string]client.IndexerFunc{}}
	}
	for _, object := range options.Required {
		of, err := k.kindOf(object)
		if err != nil {
			return nil, err
		}
		k.required[of] = true
	}
	for object, older := range options.Older {
		of, err := k.kindOf(object)
		if err != nil {
			return nil, err
		}
		if k.older[of], err = k.kindOf(older); err != nil {
			return nil, err
		}
		if _, err := k.budgeted(older); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// isOlder reports whether a kind is an earlier version of another one.
func (k *Kinds) isOlder(of schema.GroupVersionKind) bool {
	for _, older := range k.older {
		if older == of {
			return true
		}
	}
	return false
}

func (k *Kinds) kindOf(object runtime.Object) (schema.GroupVersionKind, error) {
	of, err := apiutil.GVKForObject(object, k.mgr.GetScheme())
	if err != nil {
		return of, fmt.Errorf("find the kind of %T: %w", object, err)
	}
	return of, nil
}

// Index lets objects of a kind be found by values.
func (k *Kinds) Index(object client.Object, name string, values client.IndexerFunc) error {
	of, err := k.budgeted(object)
	if err != nil {
		return err
	}
	of.indexes[name] = values
	return nil
}

// Watch tells a controller of the events of a kind, as soon as the kind is found.
func (k *Kinds) Watch(
	controller func(source.Source) error, object client.Object, handler handler.EventHandler, predicates ...predicate.Predicate,
) error {
	of, err := k.budgeted(object)
	if err != nil {
		return err
	}
	of.watches = append(of.watches, watch{controller: controller, handler: handler, predicates: predicates})
	return nil
}

func (k *Kinds) budgeted(object client.Object) (*kind, error) {
	of, err := k.kindOf(object)
	if err != nil {
		return nil, err
	}
	if k.kinds[of] == nil {
		return nil, fmt.Errorf("the cache budget has no %s", of.Kind)
	}
	return k.kinds[of], nil
}

// Setup looks for the kinds once, and has the manager look for those that are missing.
func (k *Kinds) Setup() error {
	if !k.options.OnDemand {
		k.Begin()
		if err := k.Find(); err != nil {
			return err
		}
	}
	if err := k.mgr.Add(k); err != nil {
		return fmt.Errorf("add what looks for kinds: %w", err)
	}
	return nil
}

// Begin has the kinds looked for.
func (k *Kinds) Begin() { k.once.Do(func() { close(k.begin) }) }

// Start looks for the kinds until all are found.
func (k *Kinds) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-k.begin:
	}
	ticker := time.NewTicker(searchInterval)
	defer ticker.Stop()
	for {
		if err := k.Find(); err != nil {
			logf.FromContext(ctx).Error(err, "Look for kinds that a cluster need not have")
		} else if k.complete() {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// NeedLeaderElection is false: the standby has the kinds when it takes over.
func (k *Kinds) NeedLeaderElection() bool { return false }

// complete reports whether every kind was found, in its newest version.
func (k *Kinds) complete() bool {
	running := k.running.Load()
	if running == nil {
		return false
	}
	for of := range k.kinds {
		if !k.isOlder(of) && (*running)[of] == nil {
			return false
		}
	}
	return true
}
