package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/fault"
)

// LabelOwn marks what a test makes for itself: the recorder does not see it.
const LabelOwn = "slipway.dev/test"

// Recorder sees every version of every object of some kinds, in all namespaces.
type Recorder struct {
	cache cache.Cache
	// delay shows everything as it is; it knows whether every watch is open.
	delay *fault.CacheDelay
	kinds []schema.GroupVersionKind
	// apart are those of the kinds that are seen only where Observe asks for it.
	apart []schema.GroupVersionKind
	mu    sync.Mutex
	// spaces are what was seen, by the namespace of the run, nil where that is forgotten.
	spaces map[string]*space
}

type space struct {
	// apart are the kinds that Observe asked for.
	apart []schema.GroupVersionKind
	// events are how many there were, of kinds that are not seen in the run, too.
	events  int
	state   map[string]any
	numbers map[string]int64 // the last of each object
	// gone are the last objects of each name that were seen to be gone.
	gone    map[string]types.UID
	history []Version
}

// Version is an object at a moment.
type Version struct {
	// Object is what it is called, for example Deployment/shop.
	Object string
	// Number is the resource version: it orders the versions of all objects.
	Number int64
	// Deleted reports whether the object is gone.
	Deleted bool
	// Asks is what the object asks for, as JSON: everything but metadata and status.
	Asks string
	// At is when it was seen.
	At time.Time
	// Fields is the whole object.
	Fields map[string]any
}

// NewRecorder starts to watch the kinds, until the context ends. Objects of those that are apart are seen only where Observe asks
// for it.
func NewRecorder(
	ctx context.Context, config *rest.Config, options cache.Options, kinds, apart []schema.GroupVersionKind,
) (*Recorder, error) {
	kinds = slices.Concat(kinds, apart)
	w := &Recorder{kinds: kinds, apart: apart, spaces: map[string]*space{}, delay: fault.NewCacheDelay(nil)}
	options.DefaultTransform = withoutOwnedFields
	var err error
	if w.cache, err = w.delay.NewCache(config, options); err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		informer, err := w.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Kind, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { w.see(object, false) },
			UpdateFunc: func(_, object any) { w.see(object, false) },
			DeleteFunc: func(object any) { w.see(object, true) },
		}); err != nil {
			return nil, err
		}
	}
	go func() { _ = w.cache.Start(ctx) }() // it ends with the context, without an error worth telling
	if !w.cache.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("the recorder did not see the cluster")
	}
	return w, nil
}

// withoutOwnedFields leaves out which fields each manager owns, which is most of an
// object. The recorder remembers thousands of namespaces, and nothing asks it for that.
func withoutOwnedFields(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	managers := slices.Clone(o.GetManagedFields())
	for i := range managers {
		managers[i].FieldsV1 = nil
	}
	o.SetManagedFields(managers)
	return object, nil
}

func newSpace() *space {
	return &space{state: map[string]any{}, numbers: map[string]int64{}, gone: map[string]types.UID{}}
}

// Observe has the recorder see further kinds in a run, before there is any object.
func (w *Recorder) Observe(namespace string, apart []schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spaces[namespace] == nil {
		w.spaces[namespace] = newSpace()
	}
	w.spaces[namespace].apart = apart
}

// shows reports whether objects of a kind are seen in a run. The mutex is held.
func (w *Recorder) shows(s *space, kind schema.GroupVersionKind) bool {
	if !slices.Contains(w.kinds, kind) {
		return false
	}
	return !slices.Contains(w.apart, kind) || s != nil && slices.Contains(s.apart, kind)
}

// Blind reports whether the recorder does not see the objects of some kind at the moment,
// because its watch was broken.
func (w *Recorder) Blind() bool { return w.delay.Blind() }

// Reader reads what the recorder sees.
func (w *Recorder) Reader() client.Reader { return w.cache }

func (w *Recorder) see(object any, deleted bool) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	o, ok := object.(*unstructured.Unstructured)
	if !ok || o.GetLabels()[LabelOwn] != "" {
		return
	}
	home := homeOf(o)
	if w.forgotten(home) {
		return
	}
	o = o.DeepCopy()
	number, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	masked := o.DeepCopy().Object
	mask(masked, home)
	version := Version{
		Object: called(o.GetKind(), o), Number: number, Deleted: deleted, Asks: asks(masked), At: time.Now(), Fields: o.Object,
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	s, known := w.spaces[home]
	if known && s == nil {
		return // meanwhile
	}
	if !known {
		s = newSpace()
		w.spaces[home] = s
	}
	if !deleted && s.numbers[version.Object] == number {
		return // a list shows everything again, and nothing has happened
	}
	s.events++
	if !w.shows(s, o.GroupVersionKind()) {
		return
	}
	s.history = append(s.history, version)
	s.numbers[version.Object] = number
	if deleted {
		delete(s.state, version.Object)
		s.gone[version.Object] = o.GetUID()
	} else {
		s.state[version.Object] = masked
	}
}

// asks returns what a masked object asks for.
func asks(masked map[string]any) string {
	content := maps.Clone(masked)
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, field)
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// State returns every object of a run by what it is called, without what differs
// from run to run. It is not to be changed.
func (w *Recorder) State(namespace string) map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.spaces[namespace]; s != nil {
		return maps.Clone(s.state)
	}
	return map[string]any{}
}

// History returns every version seen in a namespace. Those of one object are in
// order; those of different kinds need not be.
func (w *Recorder) History(namespace string) []Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.spaces[namespace]; s != nil {
		return append([]Version(nil), s.history...)
	}
	return nil
}

// Number returns the resource version of an object that was seen last, or 0.
func (w *Recorder) Number(namespace, object string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.spaces[namespace]; s != nil {
		return s.numbers[object]
	}
	return 0
}

// Numbers returns the resource versions that were seen last, by kind and name.
func (w *Recorder) Numbers(namespace string) map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.spaces[namespace]; s != nil {
		return maps.Clone(s.numbers)
	}
	return nil
}

// Saw reports whether what was done to an object was seen: a version as new as that, or that the object is gone. Where a watch was
// broken while an object went, a list shows that it is gone, and nobody shows with which version it went.
func (w *Recorder) Saw(namespace, name string, done effect) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.spaces[namespace]
	return s != nil && (s.numbers[name] >= done.number || s.gone[name] == done.uid)
}

// Sees reports whether objects of a kind are seen in a run.
func (w *Recorder) Sees(namespace string, kind schema.GroupVersionKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shows(w.spaces[namespace], kind)
}

// Count returns how many versions were seen in a namespace.
func (w *Recorder) Count(namespace string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.spaces[namespace]; s != nil {
		return len(s.history)
	}
	return 0
}

// Events returns how many there were in a run, of kinds that are not seen in it, too: what a reader shows changes with it.
func (w *Recorder) Events(namespace string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.spaces[namespace]; s != nil {
		return s.events
	}
	return 0
}

// UpToDate reports whether the recorder has seen every object of a run as it is. The first of its namespaces is the one that it
// is known by.
func (w *Recorder) UpToDate(ctx context.Context, live client.Client, namespaces ...string) (bool, error) {
	exists := map[string]bool{}
	for _, kind := range w.kinds {
		if !w.Sees(namespaces[0], kind) {
			continue
		}
		items, err := listed(ctx, live, kind, namespaces)
		if err != nil {
			return false, err
		}
		for i := range items {
			if items[i].Labels[LabelOwn] != "" {
				continue
			}
			object := called(kind.Kind, &items[i])
			exists[object] = true
			if strconv.FormatInt(w.Number(namespaces[0], object), 10) != items[i].ResourceVersion {
				return false, nil
			}
		}
	}
	for object := range w.State(namespaces[0]) {
		if !exists[object] {
			return false, nil
		}
	}
	return true, nil
}

// listed are the objects of a kind in namespaces. Of a kind that is in none it is the one that the first is the name of.
func listed(
	ctx context.Context, live client.Client, kind schema.GroupVersionKind, namespaces []string,
) ([]metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	namespaced, err := live.IsObjectNamespaced(object)
	if err != nil {
		return nil, err
	}
	if !namespaced {
		if err := live.Get(ctx, client.ObjectKey{Name: namespaces[0]}, object); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return []metav1.PartialObjectMetadata{*object}, nil
	}
	var items []metav1.PartialObjectMetadata
	for _, namespace := range namespaces {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := live.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		items = append(items, list.Items...)
	}
	return items, nil
}

func (w *Recorder) forgotten(namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, known := w.spaces[namespace]
	return known && s == nil
}

// Forget drops what was seen in a namespace, and does not look at it any more.
func (w *Recorder) Forget(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spaces[namespace] = nil
}
