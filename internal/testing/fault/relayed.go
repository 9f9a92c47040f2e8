package fault

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// relayed is what was seen of one kind. It is what a reflector stores into.
type relayed struct {
	// begin begins to look, and waits until what exists was seen, which is when listed is
	// closed. It is done once, unless it fails.
	begin    func() error
	listed   chan struct{}
	starting sync.Mutex
	started  bool

	mu sync.Mutex
	// number is the newest resource version.
	number int64
	// spaces are what was seen by namespace, nil where that is forgotten.
	spaces map[string]*relayedSpace
}

// relayedSpace is what was seen of one kind in a namespace.
type relayedSpace struct {
	versions []relayedVersion
	latest   map[string]client.Object
	// more is closed when there are more versions.
	more chan struct{}
}

// relayedVersion is a version of an object, with the one before it, if there was one.
type relayedVersion struct {
	number         int64
	object, before client.Object
	deleted        bool
}

func newRelayed() *relayed {
	return &relayed{listed: make(chan struct{}), spaces: map[string]*relayedSpace{}}
}

// Add, Update and Delete note what a watch tells.
func (k *relayed) Add(object any) error { return k.report(object, false) }

// Update notes a version.
func (k *relayed) Update(object any) error { return k.report(object, false) }

// Delete notes that an object has gone.
func (k *relayed) Delete(object any) error { return k.report(object, true) }

// Resync does nothing.
func (k *relayed) Resync() error { return nil }

// Replace notes what exists, at first and after the watch was broken.
func (k *relayed) Replace(objects []any, version string) error {
	number, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	exist := map[types.NamespacedName]bool{}
	for _, listed := range objects {
		object, ok := listed.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", listed)
		}
		exist[client.ObjectKeyFromObject(object)] = true
		k.see(object, false)
	}
	for _, s := range k.spaces {
		if s == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(s.latest)) {
			object := s.latest[name]
			if exist[client.ObjectKeyFromObject(object)] {
				continue
			}
			last := object.DeepCopyObject().(client.Object)
			last.SetResourceVersion(version)
			k.see(last, true)
		}
	}
	k.number = max(k.number, number)
	select {
	case <-k.listed:
	default:
		close(k.listed)
	}
	return nil
}

func (k *relayed) report(reported any, deleted bool) error {
	object, ok := reported.(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", reported)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.see(object, deleted)
	return nil
}

// space returns what was seen in a namespace, nil when that is forgotten.
func (k *relayed) space(namespace string) *relayedSpace {
	s, known := k.spaces[namespace]
	if !known {
		s = &relayedSpace{latest: map[string]client.Object{}, more: make(chan struct{})}
		k.spaces[namespace] = s
	}
	return s
}

func (k *relayed) see(object client.Object, deleted bool) {
	s := k.space(object.GetNamespace())
	if s == nil {
		return
	}
	before := s.latest[object.GetName()]
	if !deleted && before != nil && before.GetResourceVersion() == object.GetResourceVersion() {
		return // seen again, because the watch was broken
	}
	number, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	k.number = max(k.number, number)
	s.versions = append(s.versions, relayedVersion{number: number, object: object, before: before, deleted: deleted})
	if deleted {
		delete(s.latest, object.GetName())
	} else {
		s.latest[object.GetName()] = object
	}
	close(s.more)
	s.more = make(chan struct{})
}

func (k *relayed) forget(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spaces[namespace] = nil
}

// start begins to look, unless that was done.
func (k *relayed) start() error {
	k.starting.Lock()
	defer k.starting.Unlock()
	if k.started {
		return nil
	}
	if err := k.begin(); err != nil {
		return err
	}
	k.started = true
	return nil
}

// list returns what exists in a namespace.
func (k *relayed) list(namespace string, selector labels.Selector) *corev1.List {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := &corev1.List{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatInt(k.number, 10)}}
	s := k.space(namespace)
	if s == nil {
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(s.latest)) {
		if object := s.latest[name]; selector.Matches(labels.Set(object.GetLabels())) {
			list.Items = append(list.Items, runtime.RawExtension{Object: object.DeepCopyObject()})
		}
	}
	return list
}

// after returns the versions after the first so many, and what is closed when there are
// more.
func (k *relayed) after(namespace string, first int) ([]relayedVersion, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.space(namespace)
	if s == nil {
		return nil, nil
	}
	return s.versions[first:], s.more
}

// event returns what a watch that selects objects is told of a version, if anything.
func (v relayedVersion) event(selector labels.Selector) (watch.Event, bool) {
	was := v.before != nil && selector.Matches(labels.Set(v.before.GetLabels()))
	is := !v.deleted && selector.Matches(labels.Set(v.object.GetLabels()))
	switch {
	case is && was:
		return watch.Event{Type: watch.Modified, Object: v.object.DeepCopyObject()}, true
	case is:
		return watch.Event{Type: watch.Added, Object: v.object.DeepCopyObject()}, true
	case was:
		// The API server shows the object as it was selected last, with the new version.
		last := v.before.DeepCopyObject().(client.Object)
		last.SetResourceVersion(v.object.GetResourceVersion())
		return watch.Event{Type: watch.Deleted, Object: last}, true
	default:
		return watch.Event{}, false
	}
}

// relayLister lists and watches a kind in one namespace for one cache.
type relayLister struct {
	kind      *relayed
	namespace string
	selector  labels.Selector
	// exact lists what the relay does not know any more: how it was at a version.
	exact toolscache.ListerWatcherWithContext
}

func (l *relayLister) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if err := l.kind.start(); err != nil {
		return nil, err
	}
	if options.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return l.exact.ListWithContext(ctx, options)
	}
	return l.kind.list(l.namespace, l.selector), nil
}

// watch tells of every version after the one that is asked for.
func (l *relayLister) watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	from, err := strconv.ParseInt(options.ResourceVersion, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("watch from version %q: %w", options.ResourceVersion, err)
	}
	w := &relayWatch{of: l, from: from, result: make(chan watch.Event), stopped: make(chan struct{})}
	go w.run()
	return w, nil
}

// relayWatch tells of what happens after a list.
type relayWatch struct {
	of *relayLister
	// from is the version after which it tells, next how many versions it has looked at.
	from    int64
	next    int
	result  chan watch.Event
	stop    sync.Once
	stopped chan struct{}
}

func (w *relayWatch) ResultChan() <-chan watch.Event { return w.result }

func (w *relayWatch) Stop() { w.stop.Do(func() { close(w.stopped) }) }

func (w *relayWatch) run() {
	defer close(w.result)
	for {
		versions, more := w.of.kind.after(w.of.namespace, w.next)
		for _, version := range versions {
			w.next++
			event, reported := version.event(w.of.selector)
			if !reported || version.number <= w.from {
				continue
			}
			select {
			case w.result <- event:
			case <-w.stopped:
				return
			}
		}
		if len(versions) > 0 {
			continue
		}
		select {
		case <-more:
		case <-w.stopped:
			return
		}
	}
}
