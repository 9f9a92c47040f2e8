package watch

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// shelf is where a reflector puts the objects of a kind: by name, and only what is needed
// of each.
type shelf[O metav1.Object, T any] struct {
	// keep returns what is needed of an object.
	keep func(O) T
	// same reports whether a new state of an object says nothing new.
	same func(T, T) bool
	// changed is told what an object was and is; nil where there was or is none. It must
	// not block.
	changed func(before, after *T)
	// replaced is told that everything was read anew. It must not block.
	replaced func()

	mu     sync.RWMutex
	items  map[string]T
	filled bool
}

var _ cache.TransformingStore = (*shelf[metav1.Object, struct{}])(nil)

// kept is what is needed of an object, on its way to the shelf.
type kept[T any] struct {
	name  string
	value T
}

// Transformer is for the reflector, which collects everything there is before it comes to
// the shelf: what is not needed is not even collected.
func (s *shelf[O, T]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.reduce(object) }
}

func (s *shelf[O, T]) reduce(object any) (kept[T], error) {
	switch object := object.(type) {
	case kept[T]:
		return object, nil
	case O:
		return kept[T]{object.GetName(), s.keep(object)}, nil
	default:
		return kept[T]{}, fmt.Errorf("there is no place for a %T", object)
	}
}

// Add puts an object on the shelf.
func (s *shelf[O, T]) Add(object any) error {
	next, err := s.reduce(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	before, known := s.items[next.name]
	if s.items == nil {
		s.items = map[string]T{}
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

// Update is Add: there is one place for a name.
func (s *shelf[O, T]) Update(object any) error { return s.Add(object) }

// Delete takes an object away.
func (s *shelf[O, T]) Delete(object any) error {
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

// Replace puts these objects in the place of all.
func (s *shelf[O, T]) Replace(objects []any, _ string) error {
	items := make(map[string]T, len(objects))
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

// Resync has nothing to do: nobody missed anything.
func (s *shelf[O, T]) Resync() error { return nil }

// full reports whether everything was read once.
func (s *shelf[O, T]) full() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.filled
}

func (s *shelf[O, T]) get(name string) (T, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, found := s.items[name]
	return value, found
}

// each calls f for everything on the shelf, in any order. f must not block.
func (s *shelf[O, T]) each(f func(name string, value T)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, value := range s.items {
		f(name, value)
	}
}
