package watch

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// sighting is something that watch has seen.
type sighting struct {
	// begun are the kinds that are watched from the start on.
	begun []string
	// resource is the kind that the following is about.
	resource string
	// synced reports whether the objects that are there have been listed, and count is how many.
	synced bool
	count  int
	// problem is why the kind is not watched at the moment.
	problem string
	// fatal ends the command.
	fatal error
	// record is a change, and was and is are the health before and after it.
	record  *change.Record
	was, is health.Verdict
}

// known is the last known state of an object.
type known struct {
	state   change.State
	verdict health.Verdict
}

// kindStore compares what the watch of a kind says with what is known. The reflector calls it from one goroutine.
type kindStore struct {
	kind   change.Kind
	schema *change.Schema
	policy *change.Policy
	now    func() metav1.Time
	send   func(sighting)
	known  map[types.NamespacedName]known
	synced bool
}

// follow watches a kind until the context ends.
func (w *watcher) follow(ctx context.Context, kind change.Kind, schema *change.Schema) {
	resource := kind.GroupResource().String()
	store := &kindStore{
		kind: kind, schema: schema, policy: w.policy, now: w.now, known: map[types.NamespacedName]known{},
		send: func(s sighting) { s.resource = resource; w.send(ctx, s) },
	}
	namespace := w.namespace
	if !kind.Namespaced {
		namespace = ""
	}
	last := ""
	w.reflect(ctx, kind.GroupVersionResource(), namespace, w.name, store, func(err error) {
		if problem := refusal(err); problem != last {
			last = problem
			store.send(sighting{problem: problem})
		}
	})
}

// reflect lists and watches a kind, and goes on after every failure. failed gets each error, from one goroutine.
func (w *watcher) reflect(
	ctx context.Context, resource schema.GroupVersionResource, namespace, name string, store cache.ReflectorStore, failed func(error),
) {
	var client dynamic.ResourceInterface = w.Objects.Resource(resource)
	if namespace != "" {
		client = w.Objects.Resource(resource).Namespace(namespace)
	}
	check := func(ctx context.Context, err error) {
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
	selector := ""
	if name != "" {
		selector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			list, err := client.List(ctx, options)
			check(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			watch, err := client.Watch(ctx, options)
			check(ctx, err)
			return watch, err
		},
	}
	// What the reflector logs is told to the user in other words.
	logger := logr.Discard()
	reflector := cache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, store, cache.ReflectorOptions{
		Logger: &logger, Name: resource.String(), TypeDescription: resource.String(),
	})
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		reflector.RunWithContext(klog.NewContext(ctx, logger))
	}()
}

// Add takes a new object.
func (s *kindStore) Add(object any) error { return s.see(object, false) }

// Update takes a changed object.
func (s *kindStore) Update(object any) error { return s.see(object, false) }

// Delete takes an object that is gone.
func (s *kindStore) Delete(object any) error { return s.see(object, true) }

// Resync does nothing.
func (s *kindStore) Resync() error { return nil }

// Replace takes a list of all objects. After the first one it tells what happened while the watch was interrupted.
func (s *kindStore) Replace(list []any, _ string) error {
	there := map[types.NamespacedName]bool{}
	for _, item := range list {
		object, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("%T in a list", item)
		}
		there[nameOf(object)] = true
		s.compare(object, change.Context{First: !s.synced, InGap: s.synced})
	}
	for name, last := range s.known {
		if !there[name] {
			delete(s.known, name)
			s.report(&last.state, nil, change.Context{InGap: true}, last.verdict, health.Verdict{})
		}
	}
	s.synced = true
	s.send(sighting{synced: true, count: len(list)})
	return nil
}

func (s *kindStore) see(item any, gone bool) error {
	object, ok := item.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a watch of %s sent a %T", s.kind.Resource, item)
	}
	s.compare(object, change.Context{Gone: gone})
	return nil
}

func nameOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// compare compares an object with what is known of it.
func (s *kindStore) compare(object *unstructured.Unstructured, c change.Context) {
	raw, err := object.MarshalJSON()
	if err != nil {
		s.send(sighting{problem: "an object cannot be read: " + err.Error()})
		return
	}
	state, err := change.Reduce(raw, s.kind, s.schema, s.policy)
	if err != nil {
		s.send(sighting{problem: "an object cannot be read: " + err.Error()})
		return
	}
	name := nameOf(object)
	verdict := health.Evaluate(object.Object, health.Options{Now: s.now().Time})
	last, isKnown := s.known[name]
	var before *change.State
	if isKnown {
		before = &last.state
	}
	if c.Gone {
		delete(s.known, name)
		verdict = health.Verdict{}
	} else {
		s.known[name] = known{state, verdict}
	}
	s.report(before, &state, c, last.verdict, verdict)
}

// report sends the records that follow.
func (s *kindStore) report(before, after *change.State, c change.Context, was, is health.Verdict) {
	c.Kind, c.Schema, c.Time = s.kind, s.schema, s.now().Time
	records, _ := change.Records(before, after, c)
	for i := range records {
		if records[i].Type != change.Baseline {
			s.send(sighting{record: &records[i], was: was, is: is})
		}
	}
}
