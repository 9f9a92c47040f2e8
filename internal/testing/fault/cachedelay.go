package fault

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// View is how an operator sees the objects of one kind.
type View struct {
	// Late is how much later than the cluster it sees what happens.
	Late time.Duration
	// Squash gathers what happens for that long and shows only what it came to: an object
	// that was made and deleted was never there, one that was changed and changed back is
	// as it was. That is what a watch shows after its connection was broken.
	Squash time.Duration
	// Past is a resource version: the first list shows the kind as it was then, and
	// nothing later is shown for PastFor. That is what an API server shows whose cache is stale.
	Past    string
	PastFor time.Duration
}

// CacheDelay stands between the API server and the caches of an operator. The zero value
// shows everything as it is.
type CacheDelay struct {
	mu    sync.Mutex
	views map[string]View
	every View
	// seen is when events of each kind came by, nil unless that is to be remembered.
	seen map[string][]time.Time
	// sources are what is listed and watched through the cache delay.
	sources []*delayed
}

// NewCacheDelay returns a cache delay that shows kinds as views say, by kind, and all others as
// they are.
func NewCacheDelay(views map[string]View) *CacheDelay { return &CacheDelay{views: views} }

// NewTimedCacheDelay returns a cache delay that shows everything as it is, and remembers when.
func NewTimedCacheDelay() *CacheDelay { return &CacheDelay{seen: map[string][]time.Time{}} }

// NewCacheDelayForAll returns a cache delay that shows every kind the same way.
func NewCacheDelayForAll(view View) *CacheDelay { return &CacheDelay{every: view} }

// Seen returns when the events of each kind arrived, if NewTimedCacheDelay made the cache
// delay.
func (l *CacheDelay) Seen() map[string][]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	copied := map[string][]time.Time{}
	for kind, times := range l.seen {
		copied[kind] = slices.Clone(times)
	}
	return copied
}

// Withholds reports whether something has happened that is not shown yet.
func (l *CacheDelay) Withholds() bool {
	return l.any(func(w *delayed) bool { return w.withheld > 0 })
}

// Blind reports whether a watch has ended, and no new one is open yet.
func (l *CacheDelay) Blind() bool {
	return l.any(func(w *delayed) bool { return w.watched && w.open == 0 })
}

func (l *CacheDelay) any(is func(*delayed) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.sources, func(w *delayed) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return is(w)
	})
}

// NewCache makes a cache that looks through the cache delay; it is a cache.NewCacheFunc.
func (l *CacheDelay) NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	scheme := options.Scheme
	options.NewInformer = func(
		source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(l.through(source, kindOf(object, scheme)), object, resync, indexers)
	}
	return cache.New(config, options)
}

func kindOf(object runtime.Object, scheme *runtime.Scheme) string {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		gvk = schema.GroupVersionKind{}
	}
	return gvk.Kind
}

func (l *CacheDelay) through(source toolscache.ListerWatcher, kind string) toolscache.ListerWatcher {
	l.mu.Lock()
	defer l.mu.Unlock()
	view, ok := l.views[kind]
	if !ok {
		view = l.every
	}
	made := &delayed{
		delay: l, kind: kind, view: view,
		source: toolscache.ToListerWatcherWithContext(source),
	}
	l.sources = append(l.sources, made)
	return newListFirst(made.list, made.watch)
}

// forget leaves out what nobody looks at any more.
func (l *CacheDelay) forget(source *delayed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sources = slices.DeleteFunc(l.sources, func(w *delayed) bool { return w == source })
}

func (l *CacheDelay) note(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen != nil {
		l.seen[kind] = append(l.seen[kind], time.Now())
	}
}

// delayed lists and watches one kind through the cache delay.
type delayed struct {
	delay  *CacheDelay
	kind   string
	view   View
	source toolscache.ListerWatcherWithContext

	mu     sync.Mutex
	listed bool
	until  time.Time // nothing is shown before, while the past is shown
	// watched reports whether there was a watch, open how many are, and withheld how many events
	// are not shown yet.
	watched        bool
	open, withheld int
}

// count adds to what is open and withheld.
func (w *delayed) count(open, withheld int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open += open
	w.withheld += withheld
}

func (w *delayed) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	w.mu.Lock()
	first := !w.listed
	w.listed = true
	if first && w.view.Past != "" {
		w.until = time.Now().Add(w.view.PastFor)
		options.ResourceVersion = w.view.Past
		options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	w.mu.Unlock()
	return w.source.ListWithContext(ctx, options)
}

func (w *delayed) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	source, err := w.source.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	notBefore, first := w.until, !w.watched
	w.watched = true
	w.open++
	w.mu.Unlock()
	if first {
		// The delay lives longer than the operator. That the operator has ended must not count
		// as Blind.
		context.AfterFunc(ctx, func() { w.delay.forget(w) })
	}
	through := &delayedWatch{of: w, source: source, notBefore: notBefore, result: make(chan watch.Event), stopped: make(chan struct{})}
	go through.run()
	return through, nil
}

// delayedWatch passes on the events of a watch, later or fewer.
type delayedWatch struct {
	of        *delayed
	source    watch.Interface
	notBefore time.Time
	result    chan watch.Event
	stop      sync.Once
	stopped   chan struct{}
}

func (w *delayedWatch) ResultChan() <-chan watch.Event { return w.result }

func (w *delayedWatch) Stop() {
	w.stop.Do(func() {
		close(w.stopped)
		w.source.Stop()
	})
}

// held is an event that is not shown yet.
type held struct {
	watch.Event
	due time.Time
}

// run keeps the order of the events: each is due no earlier than the one before.
func (w *delayedWatch) run() {
	defer close(w.result)
	var queue []held
	counted := 0
	defer func() { w.of.count(-1, -counted) }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var out chan watch.Event
		var next watch.Event
		now := time.Now()
		withheld, earliest := notDue(queue, now)
		if withheld != counted {
			w.of.count(0, withheld-counted)
			counted = withheld
		}
		if !earliest.IsZero() {
			timer.Reset(time.Until(earliest))
		}
		if len(queue) > 0 && !now.Before(queue[0].due) {
			out, next = w.result, queue[0].Event
		}
		select {
		case <-w.stopped:
			return
		case event, open := <-w.source.ResultChan():
			if !open {
				return
			}
			queue = w.enqueue(queue, event)
		case <-timer.C:
		case out <- next:
			queue = queue[1:]
		}
	}
}

// notDue is how many of the events may not be shown yet and tell of an object, and when
// the first of all that may not be shown yet is due.
func notDue(queue []held, now time.Time) (count int, earliest time.Time) {
	for _, h := range queue {
		if !h.due.After(now) {
			continue
		}
		if earliest.IsZero() {
			earliest = h.due
		}
		if h.Type != watch.Bookmark {
			count++
		}
	}
	return count, earliest
}

func (w *delayedWatch) enqueue(queue []held, event watch.Event) []held {
	if event.Type == watch.Error {
		return append(queue, held{Event: event})
	}
	if event.Type != watch.Bookmark {
		w.of.delay.note(w.of.kind)
	}
	view := w.of.view
	due := time.Now().Add(view.Late)
	if due.Before(w.notBefore) {
		due = w.notBefore
	}
	if view.Squash == 0 {
		return append(queue, held{Event: event, due: due})
	}
	if len(queue) > 0 {
		due = queue[0].due
	} else {
		due = due.Add(view.Squash)
	}
	return squash(queue, held{Event: event, due: due})
}

// squash adds an event to those that are held, and merges it with an earlier one of
// the same object.
func squash(queue []held, event held) []held {
	if event.Type == watch.Bookmark {
		return append(queue, event)
	}
	earlier := slices.IndexFunc(queue, func(h held) bool { return h.Type != watch.Bookmark && sameName(h.Object, event.Object) })
	if earlier < 0 {
		return append(queue, event)
	}
	was := queue[earlier].Type
	queue = slices.Delete(queue, earlier, earlier+1)
	switch {
	case was == watch.Added && event.Type == watch.Deleted:
		return queue
	case was == watch.Added:
		event.Type = watch.Added
	case was == watch.Deleted:
		// Deleted and recreated: to a cache, which goes by the name, it has changed.
		event.Type = watch.Modified
	}
	return append(queue, event)
}

func sameName(a, b runtime.Object) bool {
	x, okX := a.(metav1.Object)
	y, okY := b.(metav1.Object)
	return okX && okY && x.GetNamespace() == y.GetNamespace() && x.GetName() == y.GetName()
}
