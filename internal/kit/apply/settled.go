package apply

import (
	"crypto/sha256"
	"sync"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settledObjects bounds what is remembered: entries of about 200 bytes.
const settledObjects = 131072

// passingObjects bounds what is remembered of objects that the cache shows otherwise than
// they are: those that it does not show, and those that were deleted.
const passingObjects = 4096

// settled remembers what was stated about a child when it was last found, or made, as
// stated, and which version of it that was. The same statement about the same version
// needs no second comparison, which costs a hundred times as much. Forgetting costs a
// comparison, and that a child that has gone is taken for one that never was.
//
// What the API server answered to an apply counts as settled even where it differs: an
// admission webhook has its own opinion then, and to state ours again would change
// nothing.
type settled struct {
	once sync.Once
	// children are what was stated about each, by kind and name.
	children *lru.Cache
	// stated is what was last stated about each and found, or made, so.
	stated *lru.Cache
	// hidden are the objects that exist although the cache did not show them, by kind and
	// name. To ask for them again is a read; to try to make them again would be a write.
	hidden *lru.Cache
	// deleted are the objects that were deleted, by UID: a cache may show them a while longer.
	deleted *lru.Cache
}

// statement is a digest of what was stated about one version of one object.
type statement [16]byte

func newStatement(object client.Object, stated []byte) statement {
	digest := sha256.New()
	digest.Write([]byte(object.GetUID()))
	digest.Write([]byte("/" + object.GetResourceVersion() + "/"))
	digest.Write(stated)
	return statement(digest.Sum(nil)[:16])
}

// has tells whether the object is as stated.
func (s *settled) has(child Child, stated []byte) bool {
	known, ok := s.load().children.Get(keyOf(child.Desired))
	return ok && known.(statement) == newStatement(child.Current, stated)
}

// add remembers that the object is as stated.
func (s *settled) add(child Child, stated []byte) {
	s.load().children.Add(keyOf(child.Desired), newStatement(child.Current, stated))
	s.stated.Add(keyOf(child.Desired), statedOf(child.Current, stated))
}

// statedBefore tells whether this is what was last stated about the object. Of one that
// nobody remembers it does not know.
func (s *settled) statedBefore(child Child, stated []byte) (same, remembered bool) {
	known, ok := s.load().stated.Get(keyOf(child.Desired))
	return ok && known.(statement) == statedOf(child.Current, stated), ok
}

// statedOf is a digest of what was stated about any version of an object.
func statedOf(object client.Object, stated []byte) statement {
	digest := sha256.New()
	digest.Write([]byte(object.GetUID()))
	digest.Write(stated)
	return statement(digest.Sum(nil)[:16])
}

// see remembers that the child is there.
func (s *settled) see(child Child) {
	if !s.knows(child) {
		s.load().children.Add(keyOf(child.Desired), statement{})
	}
}

// knows tells whether the child was there once.
func (s *settled) knows(child Child) bool {
	_, ok := s.load().children.Get(keyOf(child.Desired))
	return ok
}

// isDeleted tells whether the object was deleted.
func (s *settled) isDeleted(object client.Object) bool {
	_, ok := s.load().deleted.Get(object.GetUID())
	return ok
}

// addDeleted remembers that the object was deleted.
func (s *settled) addDeleted(object client.Object) { s.load().deleted.Add(object.GetUID(), nil) }

// isHidden tells whether the object was there when the cache did not show it.
func (s *settled) isHidden(child Child) bool {
	_, ok := s.load().hidden.Get(keyOf(child.Desired))
	return ok
}

// setHidden remembers whether the object is there although the cache does not show it.
func (s *settled) setHidden(child Child, is bool) {
	if is {
		s.load().hidden.Add(keyOf(child.Desired), nil)
	} else {
		s.load().hidden.Remove(keyOf(child.Desired))
	}
}

func keyOf(c Configuration) string {
	return *c.GetKind() + "/" + *c.GetNamespace() + "/" + *c.GetName()
}

func (s *settled) load() *settled {
	s.once.Do(func() {
		s.children, s.stated = lru.New(settledObjects), lru.New(settledObjects)
		s.hidden, s.deleted = lru.New(passingObjects), lru.New(passingObjects)
	})
	return s
}
