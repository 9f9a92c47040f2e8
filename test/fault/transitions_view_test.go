//go:build faulttest

package fault_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/testing/endstate"
	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

// familyView shows every declared object together with what was made of it, from a
// watch: looking costs nothing.
type familyView struct {
	kind *specKind
	// compared are the kinds whose state counts.
	compared map[string]bool
	// changed is told of every object that changes.
	changed func(actor)
	// reader reads what is watched.
	reader client.Reader

	mu       sync.Mutex
	families map[string]family
}

// family is a declared object and what was made of it. It is not changed after it was
// handed out.
type family struct {
	// declared is nil where there is none.
	declared *unstructured.Unstructured
	// all are all objects by kind and name.
	all map[string]*unstructured.Unstructured
	// state is what counts of them.
	state map[string]any
	// changed is when something last happened.
	changed time.Time
}

func newFamilyView(ctx context.Context, config *rest.Config, namespaces []string, kind *specKind, changed func(actor)) (*familyView, error) {
	options := cache.Options{DefaultNamespaces: map[string]cache.Config{}}
	for _, namespace := range namespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	watched, err := cache.New(config, options)
	if err != nil {
		return nil, err
	}
	v := &familyView{kind: kind, compared: map[string]bool{}, changed: changed, reader: watched, families: map[string]family{}}
	for _, observed := range kind.observed {
		v.compared[observed.Kind] = !slices.Contains(kind.Past.Kinds, observed.Kind)
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(observed.GroupVersionKind())
		informer, err := watched.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", observed.Kind, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { v.see(object, false) },
			UpdateFunc: func(_, object any) { v.see(object, false) },
			DeleteFunc: func(object any) { v.see(object, true) },
		}); err != nil {
			return nil, err
		}
	}
	go func() { _ = watched.Start(ctx) }() // it ends with the context
	if !watched.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("the objects cannot be watched")
	}
	return v, nil
}

func (v *familyView) see(seen any, gone bool) {
	if unknown, ok := seen.(toolscache.DeletedFinalStateUnknown); ok {
		seen = unknown.Obj
	}
	object, ok := seen.(*unstructured.Unstructured)
	if !ok {
		return
	}
	var state map[string]any
	if v.compared[object.GetKind()] {
		state = v.endState(object)
	}
	name, _, _ := strings.Cut(object.GetName(), "-")
	key := object.GetNamespace() + "/" + name
	id := object.GetKind() + "/" + object.GetName()

	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.families[key].copied()
	first := now.declared == nil
	now.changed = time.Now()
	if gone {
		delete(now.all, id)
		delete(now.state, id)
	} else {
		now.all[id] = object
		if state != nil {
			now.state[id] = state
		}
	}
	now.declared = now.all[v.kind.gvk.Kind+"/"+name]
	v.families[key] = now
	if !gone && (object != now.declared || first) {
		v.tell(now, object)
	}
}

// tell tells of an object that changed. What scales a workload looks at it too, and what
// belongs to an earlier object of a name has to go when there is a new one.
func (v *familyView) tell(now family, object *unstructured.Unstructured) {
	v.changed(actorOf(object))
	if autoscaler, ok := now.all["HorizontalPodAutoscaler/"+object.GetName()]; ok && object.GetKind() == "Deployment" {
		v.changed(actorOf(autoscaler))
	}
	if object == now.declared {
		for _, child := range now.all {
			v.changed(actorOf(child))
		}
	}
}

// endState is what counts of an object.
func (v *familyView) endState(object *unstructured.Unstructured) map[string]any {
	state := endstate.From(object)
	if object.GetKind() != v.kind.gvk.Kind {
		// The status of what was made is the work of others.
		delete(state, "status")
		return state
	}
	for _, field := range v.kind.Past.Fields {
		unstructured.RemoveNestedField(state, strings.Split(field, ".")...)
	}
	return state
}

func (v *familyView) family(namespace, name string) family {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.families[namespace+"/"+name]
}

// newest is the object as it was seen last, or nil when it is gone.
func (v *familyView) newest(who actor) *unstructured.Unstructured {
	name, _, _ := strings.Cut(who.name, "-")
	return v.family(who.namespace, name).all[who.kind+"/"+who.name]
}

func (f family) copied() family {
	copied := family{declared: f.declared, all: map[string]*unstructured.Unstructured{}, state: map[string]any{}, changed: f.changed}
	maps.Copy(copied.all, f.all)
	maps.Copy(copied.state, f.state)
	return copied
}

// upToDate tells what has not been looked at by its controller yet: the declared object
// of that generation or later, or something that was made of it.
func (f family) upToDate(generation int64) error {
	if f.declared.GetGeneration() < generation {
		return fmt.Errorf("generation %d was not seen, only %d", generation, f.declared.GetGeneration())
	}
	for id, object := range f.all {
		observed, found, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		if (found || object == f.declared) && observed < object.GetGeneration() {
			return fmt.Errorf("the status of %s speaks of generation %d of %d", id, observed, object.GetGeneration())
		}
	}
	return nil
}

// without tells what is there of the kinds.
func (f family) without(kinds []string) error {
	for id, object := range f.all {
		if slices.Contains(kinds, object.GetKind()) {
			return fmt.Errorf("there is still %s", id)
		}
	}
	return nil
}

func (f family) conditions() []metav1.Condition { return scenario.Declared(f.declared).GetConditions() }

// String shows the declared object.
func (f family) String() string {
	if f.declared == nil {
		return "there is no object"
	}
	shown := f.declared.DeepCopy()
	shown.SetManagedFields(nil)
	raw, err := yaml.Marshal(shown.Object)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
