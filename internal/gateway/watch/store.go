package watch

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store holds the objects of a kind for a reflector, by namespace and name. It keeps only
// the part of each that is needed.
type store[O metav1.Object, T any] struct {
	// keep returns the part of an object that is needed.
	keep func(O) T
	// same reports whether two states of an object are equal.
	same func(T, T) bool
	// changed is called with the earlier and the new state of an object. A state is nil if
	// the object does not exist. It must not block.
	changed func(before, after *T)
	// replaced is called after all objects were read again. It must not block.
	replaced func()

	mu     sync.RWMutex
	items  map[types.NamespacedName]T
	filled bool
}

var _ cache.TransformingStore = (*store[metav1.Object, struct{}])(nil)

// kept is the needed part of an object before it is stored.
type kept[T any] struct {
	name  types.NamespacedName
	value T
}

// Transformer makes the reflector reduce each object when it reads it. Otherwise the
// reflector would collect all complete objects first.
func (s *store[O, T]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.reduce(object) }
}

func (s *store[O, T]) reduce(object any) (kept[T], error) {
	switch object := object.(type) {
	case kept[T]:
		return object, nil
	case O:
		return kept[T]{types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, s.keep(object)}, nil
	default:
		return kept[T]{}, fmt.Errorf("there is no place for a %T", object)
	}
}

// Add stores an object.
func (s *store[O, T]) Add(object any) error {
	next, err := s.reduce(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	before, known := s.items[next.name]
	if s.items == nil {
		s.items = map[types.NamespacedName]T{}
	}
	s.items[next.name] = next.value
	s.mu.Unlock()
	switch {
	case !known:
		s.changed(nil, &next.value)
	case !s.same(before, next.value):
		s.changed(&before, &next.value)
	}
	return nil
}

// Update is Add, because objects are stored by name.
func (s *store[O, T]) Update(object any) error { return s.Add(object) }

// Delete removes an object.
func (s *store[O, T]) Delete(object any) error {
	gone, err := s.reduce(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	before, known := s.items[gone.name]
	delete(s.items, gone.name)
	s.mu.Unlock()
	if known {
		s.changed(&before, nil)
	}
	return nil
}

// Replace replaces all objects.
func (s *store[O, T]) Replace(objects []any, _ string) error {
	items := make(map[types.NamespacedName]T, len(objects))
	for _, object := range objects {
		next, err := s.reduce(object)
		if err != nil {
			return err
		}
		items[next.name] = next.value
	}
	s.mu.Lock()
	s.items, s.filled = items, true
	s.mu.Unlock()
	s.replaced()
	return nil
}

// Resync does nothing, because no event is lost.
func (s *store[O, T]) Resync() error { return nil }

// absent notes that the cluster does not have the kind, so that there are no objects. It
// returns false, and changes nothing, if objects were read before: then it is an error.
func (s *store[O, T]) absent() bool {
	s.mu.Lock()
	before := s.filled
	s.filled = s.filled || len(s.items) == 0
	empty := len(s.items) == 0
	s.mu.Unlock()
	if empty && !before {
		s.replaced()
	}
	return empty
}

// full reports whether all objects were read at least once.
func (s *store[O, T]) full() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.filled
}

func (s *store[O, T]) get(name types.NamespacedName) (T, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, found := s.items[name]
	return value, found
}

// each calls f for each stored object, in any order. f must not block.
func (s *store[O, T]) each(f func(name types.NamespacedName, value T)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, value := range s.items {
		f(name, value)
	}
}
