package affinity

import (
	"crypto/hkdf"
	"crypto/sha256"
)

// minSecret is the least length of a secret that keys are made of.
const minSecret = 32

// NewSessionKey derives the key of names of backends and endpoints from the secret that the replicas of a gateway have in common.
// scope names the gateway: the same secret in another scope makes another key. It is nil if the secret is too short to keep.
func NewSessionKey(secret []byte, scope string) []byte {
	if len(secret) < minSecret {
		return nil
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "slipway sessions v1 "+scope, sha256.Size)
	if err != nil {
		return nil // only for a length that no hash has
	}
	return key
}
