package apply

import (
	"hash/maphash"
	"sync"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// settledChildren bounds how many children are remembered: entries of about 200 bytes.
	settledChildren = 131072
	// hiddenChildren bounds how many of those that the cache does not show.
	hiddenChildren = 4096
)

// settled remembers the children that were found, or made, as desired, and at which
// version. A comparison costs a hundred times as much as a look in here. Forgetting costs a
// comparison, and that a child that has gone is taken for one that never was.
//
// What the API server answers to an apply is desired where it does not differ. What differs is
// remembered beside: see alteration.
type settled struct {
	once sync.Once
	seed maphash.Seed
	// children are the last sums of each child; the zero value: it was seen.
	children *lru.Cache
	// hidden are the children that exist although the cache did not show them. To ask for
	// one again is a read; to try to create it again would be a write.
	hidden *lru.Cache
	// altered are the children that came back from the last apply other than desired.
	altered *lru.Cache
}

// sums identify what was desired of an object, of any version of it and of one.
type sums struct{ desired, version uint64 }

func (s *settled) sumsOf(object client.Object, desired []byte) sums {
	var (
		h   maphash.Hash
		sum sums
	)
	h.SetSeed(s.load().seed)
	_, _ = h.WriteString(string(object.GetUID()))
	_, _ = h.Write(desired)
	sum.desired = h.Sum64()
	_, _ = h.WriteString(object.GetResourceVersion())
	sum.version = h.Sum64()
	return sum
}

// has reports whether the object is as desired.
func (s *settled) has(child Child, desired []byte) bool {
	known, ok := s.load().children.Get(keyOf(child.Desired))
	return ok && known.(sums).version == s.sumsOf(child.Current, desired).version
}

// add remembers that the object is as desired.
func (s *settled) add(child Child, desired []byte) {
	s.load().children.Add(keyOf(child.Desired), s.sumsOf(child.Current, desired))
}

// want remembers what was desired of the object last, which is not as desired.
func (s *settled) want(child Child, desired []byte) {
	s.load().children.Add(keyOf(child.Desired), sums{desired: s.sumsOf(child.Current, desired).desired})
}

// hadDesired reports whether the same was desired of the object before. Of one that nobody
// remembers it does not know.
func (s *settled) hadDesired(child Child, desired []byte) (same, remembered bool) {
	known, ok := s.load().children.Get(keyOf(child.Desired))
	if !ok || known.(sums) == (sums{}) {
		return false, false
	}
	return known.(sums).desired == s.sumsOf(child.Current, desired).desired, true
}

// see remembers that the child is there.
func (s *settled) see(child Child) {
	if !s.knows(child) {
		s.load().children.Add(keyOf(child.Desired), sums{})
	}
}

// knows reports whether the child was there once.
func (s *settled) knows(child Child) bool {
	_, ok := s.load().children.Get(keyOf(child.Desired))
	return ok
}

// isHidden reports whether the child was there when the cache did not show it.
func (s *settled) isHidden(child Child) bool {
	_, ok := s.load().hidden.Get(keyOf(child.Desired))
	return ok
}

// setHidden remembers whether the child is there although the cache does not show it.
func (s *settled) setHidden(child Child, is bool) {
	if is {
		s.load().hidden.Add(keyOf(child.Desired), nil)
	} else {
		s.load().hidden.Remove(keyOf(child.Desired))
	}
}

// childKey names a child.
type childKey struct{ kind, namespace, name string }

func keyOf(c Configuration) childKey {
	return childKey{*c.GetKind(), namespaceOf(c), *c.GetName()}
}

func (s *settled) load() *settled {
	s.once.Do(func() {
		s.seed = maphash.MakeSeed()
		s.children, s.hidden, s.altered = lru.New(settledChildren), lru.New(hiddenChildren), newAltered()
	})
	return s
}
