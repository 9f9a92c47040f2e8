package contentkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
)

// Scheme is how every hash begins that was made with a key.
const Scheme = "hmac"

// What keys are derived for. Another meaning needs another word.
const (
	labelID        = "slipway.dev key id"
	labelNamespace = "slipway.dev content of namespace "
)

// shownBytes of a hash are kept: 80 bits tell contents apart.
const shownBytes = 10

// Key keys the hashes of one namespace.
type Key struct {
	id     string
	secret []byte
}

// Derive returns the key of a namespace.
func Derive(master []byte, namespace string) Key {
	return Key{id: hex.EncodeToString(sum(master, labelID)[:4]), secret: sum(master, labelNamespace+namespace)}
}

func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// New returns a hash of the content of one object of the namespace. Its sum is for Text.
func (k Key) New(object string) hash.Hash { return hmac.New(sha256.New, sum(k.secret, object)) }

// Text is a hash as it is written: hmac, the id of the installation's key, and the first
// bytes of the hash, with a dash between them.
func (k Key) Text(h hash.Hash) string {
	return fmt.Sprintf("%s-%s-%s", Scheme, k.id, hex.EncodeToString(h.Sum(nil)[:shownBytes]))
}

// MadeWith is what the text of a hash says about how it was made: nothing if without a
// key. Two hashes can be compared if it is the same for both.
func MadeWith(text string) string {
	if !strings.HasPrefix(text, Scheme+"-") {
		return ""
	}
	return text[:strings.LastIndex(text, "-")]
}
