package change

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/redact"
)

// MinKey is the least number of bytes in the key of a policy.
const MinKey = 16

// Redacted begins the text that stands in place of a secret. What follows is a keyed hash: it changes with the secret, and is the
// same for the same secret within an object. Without the key nobody can try out which secret it is.
const Redacted = redact.HashMarker

// redactedDigits is the number of digits of the hash.
const redactedDigits = 16

// lastApplied is the annotation in which kubectl keeps the whole object, secrets included. It goes wherever it stands.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Options say what a policy hides, in addition to what is always hidden, and what it leaves out as noise.
type Options struct {
	// Key is the key of the hashes that stand in place of secrets, at least MinKey bytes. With another key every secret looks
	// changed, so keep it with the store.
	Key []byte
	// Names are further words that names of secrets have in them, such as "licence". Case and separators do not matter.
	Names []string
	// Paths are fields that are secret, with all that is below, such as .spec.users[*].login.
	Paths []string
	// Noise are fields that change all the time and mean nothing. They are counted and left out.
	Noise []string
}

// Policy says which values are secrets, and which are noise. It is safe for concurrent use.
type Policy struct {
	key    []byte
	names  *redact.Names
	secret *rules
	noise  *rules
}

// defaultNoise are fields of well-known kinds that tell only that somebody is alive.
var defaultNoise = []string{
	".spec.renewTime", ".status.lastHeartbeatTime", ".status.lastProbeTime", ".status.reconciledAt", ".status.observedAt",
	".status.refreshTime",
}

// NewPolicy makes a policy. An error says what is wrong with the options, and never holds the key.
func NewPolicy(options Options) (*Policy, error) {
	if len(options.Key) < MinKey {
		return nil, fmt.Errorf("the key has %d bytes, and needs %d", len(options.Key), MinKey)
	}
	for _, name := range options.Names {
		if redact.Letters(name) < 2 {
			return nil, fmt.Errorf("%q has too few letters for the name of a secret", name)
		}
	}
	secret, err := newRules(options.Paths)
	if err != nil {
		return nil, err
	}
	noise, err := newRules(slices.Concat(defaultNoise, options.Noise))
	if err != nil {
		return nil, err
	}
	return &Policy{
		key:    bytes.Clone(options.Key),
		names:  redact.NewNames(options.Names...),
		secret: secret,
		noise:  noise,
	}, nil
}

var errNoPolicy = errors.New("without a policy nothing is read")

// marker makes the texts that stand in place of the secrets of one object.
type marker struct{ mac hash.Hash }

// marker begins with the object's identity, so that nobody who may write one object can find out what is in another by writing the
// same.
func (p *Policy) marker(identity string) marker {
	derived := hmac.New(sha256.New, p.key)
	_, _ = derived.Write([]byte(identity))
	return marker{mac: hmac.New(sha256.New, derived.Sum(nil))}
}

// text is what stands in place of a secret.
func (m marker) text(secret string) string {
	return Redacted + hex.EncodeToString(m.sum(secret)[:redactedDigits/2])
}

func (m marker) sum(text string) []byte {
	m.mac.Reset()
	_, _ = m.mac.Write([]byte(text))
	return m.mac.Sum(nil)
}

// IsRedacted reports whether a text stands in place of a secret.
func IsRedacted(text string) bool {
	digits, found := strings.CutPrefix(text, Redacted)
	if !found || len(digits) != redactedDigits {
		return false
	}
	for i := range len(digits) {
		if c := digits[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
