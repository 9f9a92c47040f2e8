package apply

import (
	"crypto/sha256"
	"strings"
	"sync"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settledObjects bounds what is remembered: entries of about 200 bytes.
const settledObjects = 131072

// hiddenObjects bounds what is remembered of objects that the cache did not show.
const hiddenObjects = 4096

// settled remembers what was stated about an object when it was last found, or made,
// as stated, and at which version that was. The same statement about the same version
// needs no second comparison, which costs a hundred times as much. Forgetting costs a
// comparison, nothing else.
//
// What the API server answered to an apply counts as settled even where it differs: an
// admission webhook has its own opinion then, and to state ours again would change
// nothing.
type settled struct {
	once    sync.Once
	objects *lru.Cache
	// hidden are the objects that exist although the cache did not show them, by kind and
	// name. To ask for them again is a read; to try to make them again would be a write.
	hidden *lru.Cache
}

// statement is what was stated about one version of an object.
type statement struct {
	version string
	sum     [16]byte
}

func newStatement(object client.Object, stated []byte) statement {
	sum := sha256.Sum256(stated)
	return statement{version: object.GetResourceVersion(), sum: [16]byte(sum[:])}
}

// has tells whether the object is as stated.
func (s *settled) has(object client.Object, stated []byte) bool {
	known, ok := s.cache().Get(object.GetUID())
	return ok && known.(statement) == newStatement(object, stated)
}

// add remembers that the object is as stated.
func (s *settled) add(object client.Object, stated []byte) {
	s.cache().Add(object.GetUID(), newStatement(object, stated))
}

// deleted stands for an object that was deleted.
var deleted = statement{version: "deleted"}

// isDeleted tells whether the object was deleted: a cache may show it a while longer.
func (s *settled) isDeleted(object client.Object) bool {
	known, ok := s.cache().Get(object.GetUID())
	return ok && known.(statement) == deleted
}

// addDeleted remembers that the object was deleted.
func (s *settled) addDeleted(object client.Object) { s.cache().Add(object.GetUID(), deleted) }

// isHidden tells whether the object was there when the cache did not show it.
func (s *settled) isHidden(child Child) bool {
	s.cache()
	_, ok := s.hidden.Get(hiddenKey(child))
	return ok
}

// setHidden remembers whether the object is there although the cache does not show it.
func (s *settled) setHidden(child Child, is bool) {
	s.cache()
	if is {
		s.hidden.Add(hiddenKey(child), nil)
	} else {
		s.hidden.Remove(hiddenKey(child))
	}
}

func hiddenKey(child Child) string {
	return strings.Join([]string{*child.Desired.GetKind(), *child.Desired.GetNamespace(), *child.Desired.GetName()}, "/")
}

func (s *settled) cache() *lru.Cache {
	s.once.Do(func() { s.objects, s.hidden = lru.New(settledObjects), lru.New(hiddenObjects) })
	return s.objects
}
