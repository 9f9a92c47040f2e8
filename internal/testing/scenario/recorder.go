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
	mu    sync.Mutex
	// spaces are what was seen, by namespace, nil where that is forgotten.
	spaces map[string]*space
}

type space struct {
	state   map[string]any
	numbers map[string]int64 // the last of each object
	history []Version
}

// Version is an object at a moment.
type Version struct {
	// Object is kind and name, for example Deployment/shop.
	Object string
	// Number is the resource version: it orders the versions of all objects.
	Number int64
	// Deleted tells that the object is gone.
	Deleted bool
	// Asks is what the object asks for, as JSON: everything but metadata and status.
	Asks string
	// At is when it was seen.
	At time.Time
	// Fields is the whole object.
	Fields map[string]any
}

// NewRecorder starts to watch the kinds, until the context ends.
func NewRecorder(ctx context.Context, config *rest.Config, options cache.Options, kinds []schema.GroupVersionKind) (*Recorder, error) {
	w := &Recorder{kinds: kinds, spaces: map[string]*space{}, delay: fault.NewCacheDelay(nil)}
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

// Blind tells that the recorder does not see the objects of some kind at the moment,
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
	if w.forgotten(o.GetNamespace()) {
		return
	}
	o = o.DeepCopy()
	number, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	masked := o.DeepCopy().Object
	mask(masked, o.GetNamespace())
	version := Version{Object: o.GetKind() + "/" + o.GetName(), Number: number, Deleted: deleted, Asks: asks(masked), At: time.Now(), Fields: o.Object}

	w.mu.Lock()
	defer w.mu.Unlock()
	s, known := w.spaces[o.GetNamespace()]
	if known && s == nil {
		return // meanwhile
	}
	if !known {
		s = &space{state: map[string]any{}, numbers: map[string]int64{}}
		w.spaces[o.GetNamespace()] = s
	}
	s.history = append(s.history, version)
	s.numbers[version.Object] = number
	if deleted {
		delete(s.state, version.Object)
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

// State returns every object of a namespace by kind and name, without what differs
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

// Sees tells whether objects of a kind are seen.
func (w *Recorder) Sees(kind schema.GroupVersionKind) bool { return slices.Contains(w.kinds, kind) }

// Count returns how many versions were seen in a namespace.
func (w *Recorder) Count(namespace string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.spaces[namespace]; s != nil {
		return len(s.history)
	}
	return 0
}

// UpToDate tells whether the recorder has seen every object of a namespace as it is.
func (w *Recorder) UpToDate(ctx context.Context, live client.Reader, namespace string) (bool, error) {
	exists := map[string]bool{}
	for _, kind := range w.kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := live.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		for i := range list.Items {
			if list.Items[i].Labels[LabelOwn] != "" {
				continue
			}
			object := kind.Kind + "/" + list.Items[i].Name
			exists[object] = true
			if strconv.FormatInt(w.Number(namespace, object), 10) != list.Items[i].ResourceVersion {
				return false, nil
			}
		}
	}
	for object := range w.State(namespace) {
		if !exists[object] {
			return false, nil
		}
	}
	return true, nil
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
