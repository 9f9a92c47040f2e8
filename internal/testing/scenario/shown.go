package scenario

import (
	"context"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// shown is what the controllers of one operator were shown: an operator with nothing to do
// may be one that does not know yet.
type shown struct {
	mu       sync.Mutex
	handlers []*handler
}

// newCache returns what makes a cache as next does, nil: as by default, and notes what it
// shows.
func (s *shown) newCache(next cache.NewCacheFunc) cache.NewCacheFunc {
	if next == nil {
		next = cache.New
	}
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		made, err := next(config, options)
		return notingCache{made, s}, err
	}
}

// behind reports whether an object was last shown to a controller in an earlier version than
// these, by kind and name. Of one that is not shown at all, because it is not selected, that
// is not known.
func (s *shown) behind(numbers map[string]int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.handlers {
		if h.behind(numbers) {
			return true
		}
	}
	return false
}

// notingCache is a cache whose handlers are noted.
type notingCache struct {
	cache.Cache
	shown *shown
}

// GetInformer returns an informer that notes.
func (c notingCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, object, options...)
	if err != nil {
		return nil, err
	}
	gvk, err := apiutil.GVKForObject(object, scheme)
	return notingInformer{informer, gvk.Kind, c.shown}, err
}

// GetInformerForKind returns an informer that notes.
func (c notingCache) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, options ...cache.InformerGetOption,
) (cache.Informer, error) {
	informer, err := c.Cache.GetInformerForKind(ctx, gvk, options...)
	return notingInformer{informer, gvk.Kind, c.shown}, err
}

// notingInformer is an informer whose handlers are noted.
type notingInformer struct {
	cache.Informer
	kind  string
	shown *shown
}

func (i notingInformer) noting(next toolscache.ResourceEventHandler) *handler {
	made := &handler{next: next, kind: i.kind, numbers: map[string]int64{}}
	i.shown.mu.Lock()
	defer i.shown.mu.Unlock()
	i.shown.handlers = append(i.shown.handlers, made)
	return made
}

// AddEventHandler adds a handler that is noted.
func (i notingInformer) AddEventHandler(next toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandler(i.noting(next))
}

// AddEventHandlerWithResyncPeriod adds a handler that is noted.
func (i notingInformer) AddEventHandlerWithResyncPeriod(
	next toolscache.ResourceEventHandler, resync time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithResyncPeriod(i.noting(next), resync)
}

// AddEventHandlerWithOptions adds a handler that is noted.
func (i notingInformer) AddEventHandlerWithOptions(
	next toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithOptions(i.noting(next), options)
}

// handler passes events on, and then notes them: by then what is to be done is in a queue.
type handler struct {
	next toolscache.ResourceEventHandler
	kind string
	mu   sync.Mutex
	// numbers are the resource versions last shown of what exists, by kind and name.
	numbers map[string]int64
}

// OnAdd passes an event on.
func (h *handler) OnAdd(object any, initial bool) {
	h.next.OnAdd(object, initial)
	h.note(object, false)
}

// OnUpdate passes an event on.
func (h *handler) OnUpdate(before, after any) {
	h.next.OnUpdate(before, after)
	h.note(after, false)
}

// OnDelete passes an event on.
func (h *handler) OnDelete(object any) {
	h.next.OnDelete(object)
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	h.note(object, true)
}

func (h *handler) note(object any, gone bool) {
	o, ok := object.(metav1.Object)
	if !ok {
		return
	}
	name := called(h.kind, o)
	number, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.numbers[name] = number; gone {
		// It may be another's now, and not be shown any more.
		delete(h.numbers, name)
	}
}

func (h *handler) behind(numbers map[string]int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, number := range h.numbers {
		if number < numbers[name] {
			return true
		}
	}
	return false
}
