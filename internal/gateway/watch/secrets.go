package watch

import (
	"bytes"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// secret is the part of a Secret that is kept.
type secret struct {
	data    map[string][]byte
	version string // its resourceVersion
}

type secretStore = store[*corev1.Secret, secret]

// secrets are the Secrets that specs name. Each is watched by its name.
type secrets struct {
	group[*corev1.Secret, secret]

	namespace string
}

func newSecrets(clock clock.PassiveClock, namespace string, wake func()) secrets {
	s := secrets{namespace: namespace}
	s.clock, s.wake = clock, wake
	s.newStore = func() *secretStore {
		return &secretStore{
			keep: keepSecret, same: sameSecret,
			changed:  func(_, _ *secret) { wake() },
			replaced: wake,
		}
	}
	return s
}

func keepSecret(in *corev1.Secret) secret {
	return secret{data: in.Data, version: in.ResourceVersion}
}

func sameSecret(a, b secret) bool {
	return a.version == b.version && maps.EqualFunc(a.data, b.data, bytes.Equal)
}

// get returns a Secret that is watched, if it exists.
func (s *secrets) get(name string) (secret, bool) {
	w := s.watched[name]
	if w == nil {
		return secret{}, false
	}
	return w.store.get(types.NamespacedName{Namespace: s.namespace, Name: name})
}

// contents returns the contents of these Secrets, and the names of those that may not be
// read.
func (s *secrets) contents(names map[string]bool) (data map[string]map[string][]byte, unreadable map[string]bool) {
	data, unreadable = map[string]map[string][]byte{}, map[string]bool{}
	for name := range names {
		if content, found := s.get(name); found {
			data[name] = content.data
		} else if !s.watched[name].store.full() {
			unreadable[name] = true
		}
	}
	return data, unreadable
}
