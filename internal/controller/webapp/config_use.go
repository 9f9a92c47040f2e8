package webapp

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/contentkey"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// use is what is known about one use of a Secret or ConfigMap.
type use struct {
	ref configRef
	// recorded is what the Deployment records of the version that there is, or nil.
	recorded *digest
	// read is the content, nil where it was not read. Without both the object does not exist.
	read *content
}

// content is the content of one use as it was read.
type content struct {
	version string
	// plain is its hash without a key, as v0.1.0 wrote it, which had none. It is compared with
	// those, and otherwise stays in here: whoever reads it can try values out. Ends in v0.4.0.
	plain string
	// keyed is its hash with the key of the namespace, empty without one. noKey is why.
	keyed string
	noKey error
	// missingKey is a key that is used and not there.
	missingKey string
	// immutable reports whether it cannot change, and created is since when the object has been there.
	immutable bool
	created   metav1.Time
}

func contentOf(object client.Object, immutable *bool) *content {
	return &content{version: object.GetResourceVersion(), immutable: immutable != nil && *immutable, created: object.GetCreationTimestamp()}
}

// contradicts reports whether something else is recorded of content that was read. Hashes that
// were made with another key say nothing.
func (c *content) contradicts(recorded digest) bool {
	switch {
	case c == nil:
		return false
	case contentkey.MadeWith(recorded.hash) == "":
		return recorded.hash != c.plain
	case contentkey.MadeWith(recorded.hash) == contentkey.MadeWith(c.keyed):
		return recorded.hash != c.keyed
	default:
		return false
	}
}

// absent reports whether the object does not exist.
func (u use) absent() bool { return u.recorded == nil && u.read == nil }

// missing is why pods cannot start with it, or nil.
func (u use) missing() *outcome.Error {
	if u.ref.optional {
		return nil
	}
	key := ""
	switch {
	case u.absent():
		return outcome.Waitingf(0, notFoundReason(u.ref), "%s %q does not exist (%s)", u.ref.kind, u.ref.name, u.ref.field)
	case u.recorded != nil:
		key = u.recorded.missingKey
	default:
		key = u.read.missingKey
	}
	if key == "" {
		return nil
	}
	return outcome.Waitingf(0, slipwayv1alpha1.ReasonKeyNotFound, "%s %q has no key %q (%s)", u.ref.kind, u.ref.name, key, u.ref.field)
}

// replaced is why pods would not get the content, or nil. A node keeps the content of an immutable object by its name, as
// long as it has a pod that uses it. One that was deleted and made again with other content is not read there again, neither
// for new pods nor for files of old ones.
func (u use) replaced(recorded map[string]digest, pods []corev1.Pod) *outcome.Error {
	known, used := recorded[u.ref.id()]
	if u.read == nil || !u.read.immutable || !used || known.hash == "" || !u.read.contradicts(known) {
		return nil
	}
	older := func(pod corev1.Pod) bool {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		return !ended && pod.CreationTimestamp.Before(&u.read.created)
	}
	if !slices.ContainsFunc(pods, older) {
		return nil
	}
	return outcome.Waitingf(0, slipwayv1alpha1.ReasonImmutableReplaced,
		"%s %q (%s) is immutable and was made again with other content; nodes give pods the earlier content as long as one of "+
			"them uses it: "+
			"give the object another name, or set spec.replicas to 0 until no pod is left", u.ref.kind, u.ref.name, u.ref.field)
}

func notFoundReason(ref configRef) string {
	if ref.kind == "Secret" {
		return slipwayv1alpha1.ReasonSecretNotFound
	}
	return slipwayv1alpha1.ReasonConfigMapNotFound
}

// asRecorded returns what is recorded, where it is of the same uses at the versions that
// there are: whatever keys it was made with, the content is the same.
func asRecorded(uses []use, recorded map[string]digest) (map[string]digest, bool) {
	digests := make(map[string]digest, len(uses))
	for _, u := range uses {
		known, ok := recorded[u.ref.id()]
		same := u.recorded != nil || u.absent() && known.version == "" && known.hash == ""
		if !ok || !same {
			return nil, false
		}
		digests[u.ref.id()] = known
	}
	return digests, len(digests) == len(recorded)
}

// choose returns the digests of content that was read. They are made with a key, except
// where the same content without one is recorded, or in the pods: pods that nobody has
// changed must not restart. running is the hash that stands on the pods.
func choose(uses []use, recorded map[string]digest, running string) (map[string]digest, error) {
	plain, keyed := make(map[string]digest, len(uses)), make(map[string]digest, len(uses))
	var noKey error
	for _, u := range uses {
		id := u.ref.id()
		if u.absent() {
			plain[id], keyed[id] = digest{}, digest{}
			continue
		}
		plain[id] = digest{version: u.read.version, hash: u.read.plain, missingKey: u.read.missingKey}
		keyed[id] = digest{version: u.read.version, hash: u.read.keyed, missingKey: u.read.missingKey}
		if u.read.noKey != nil {
			noKey = u.read.noKey
		}
	}
	if is := combine(plain); is == running || is == combine(recorded) {
		return plain, nil
	}
	return keyed, noKey
}
