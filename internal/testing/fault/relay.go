package fault

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Relay lists and watches each kind once for all operators of a process, and shows each
// of them the objects of its own namespace, as the API server does from its own cache:
// every version, in order. Lists and watches are most of what starting an operator costs.
// A list may be some milliseconds old, as any that does not ask for the very latest.
type Relay struct {
	ctx    context.Context
	config *rest.Config
	scheme *runtime.Scheme
	delay  *CacheDelay
	// known are answers about the kinds that there are, by question.
	known sync.Map

	mu    sync.Mutex
	kinds map[relayedAs]*relayed
	// forgotten are namespaces, for kinds that somebody wants to see later.
	forgotten map[string]bool
}

// relayedAs is a kind, and the type that it is wanted as: whole objects, or their metadata.
type relayedAs struct {
	schema.GroupVersionKind
	reflect.Type
}

// NewRelay returns a relay that watches until the context ends.
func NewRelay(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) *Relay {
	return &Relay{
		ctx: ctx, config: config, scheme: scheme, delay: NewCacheDelay(nil), kinds: map[relayedAs]*relayed{}, forgotten: map[string]bool{},
	}
}

// Blind reports whether the relay does not see the objects of some kind at the moment, because
// its watch was broken.
func (r *Relay) Blind() bool { return r.delay.Blind() }

// Forget drops what was seen in a namespace, and does not look at it any more.
func (r *Relay) Forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten[namespace] = true
	for _, kind := range r.kinds {
		kind.forget(namespace)
	}
}

// NewCache returns what makes a cache of namespaces that gets its objects from the
// relay, and sees them through a cache delay, unless that is nil. A cache of anything else, such
// as a kind without namespaces or one that is selected by its fields, asks the API server
// itself.
func (r *Relay) NewCache(delay *CacheDelay) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		asked := options
		options.NewInformer = func(
			source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
		) toolscache.SharedIndexInformer {
			source = r.instead(source, object, asked)
			if delay != nil {
				source = delay.through(source, kindOf(object, r.scheme))
			}
			return toolscache.NewSharedIndexInformer(source, object, resync, indexers)
		}
		return cache.New(config, options)
	}
}

// instead returns the relay's source for what a cache asks of a kind, or the source that it
// has where the relay has none.
func (r *Relay) instead(source toolscache.ListerWatcher, object runtime.Object, asked cache.Options) toolscache.ListerWatcher {
	namespaces := slices.Collect(maps.Keys(asked.DefaultNamespaces))
	gvk, err := apiutil.GVKForObject(object, r.scheme)
	typed, ok := object.(client.Object)
	if err != nil || !ok || len(namespaces) == 0 || asked.DefaultLabelSelector != nil || asked.DefaultFieldSelector != nil ||
		asked.Mapper == nil {
		return source
	}
	for _, config := range asked.DefaultNamespaces {
		if config.LabelSelector != nil || config.FieldSelector != nil {
			return source
		}
	}
	mapping, err := asked.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return source
	}
	selector := labels.Everything()
	for of, by := range asked.ByObject {
		if other, err := apiutil.GVKForObject(of, r.scheme); err != nil || other != gvk {
			continue
		}
		if by.Field != nil || by.Namespaces != nil {
			return source
		}
		if by.Label != nil {
			selector = by.Label
		}
	}
	namespace := namespaces[0]
	if len(namespaces) > 1 {
		if namespace = r.namespaceOf(source); namespace == "" {
			return source
		}
	}
	lister := &relayLister{
		kind: r.kind(gvk, typed), namespace: namespace, selector: selector,
		exact: toolscache.ToListerWatcherWithContext(source),
	}
	return newListFirst(lister.list, lister.watch)
}

// kind returns what was seen of a kind, which is watched when somebody wants to see it.
func (r *Relay) kind(gvk schema.GroupVersionKind, object client.Object) *relayed {
	r.mu.Lock()
	defer r.mu.Unlock()
	as := relayedAs{gvk, reflect.TypeOf(object)}
	if r.kinds[as] == nil {
		made := newRelayed()
		for namespace := range r.forgotten {
			made.forget(namespace)
		}
		made.begin = func() error { return r.watch(gvk, object, made) }
		r.kinds[as] = made
	}
	return r.kinds[as]
}

// watch begins to watch a kind, and waits until what exists was seen.
func (r *Relay) watch(gvk schema.GroupVersionKind, object client.Object, into *relayed) error {
	source, err := r.source(object)
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	reflector := toolscache.NewReflectorWithOptions(r.delay.through(source, gvk.Kind), object, into, toolscache.ReflectorOptions{})
	go reflector.RunWithContext(r.ctx)
	select {
	case <-into.listed:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// source returns what a cache of the whole cluster would list and watch.
func (r *Relay) source(object client.Object) (toolscache.ListerWatcher, error) {
	var source toolscache.ListerWatcher
	options := cache.Options{Scheme: r.scheme}
	options.NewInformer = func(
		s toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		source = s
		return toolscache.NewSharedIndexInformer(s, o, resync, indexers)
	}
	never, err := cache.New(r.config, options)
	if err != nil {
		return nil, err
	}
	if _, err := never.GetInformer(r.ctx, object, cache.BlockUntilSynced(false)); err != nil {
		return nil, err
	}
	return source, nil
}
