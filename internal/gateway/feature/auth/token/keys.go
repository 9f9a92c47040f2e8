package token

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

const (
	// MaxKeySet is the size of the largest accepted key set, in bytes.
	MaxKeySet = 512 << 10
	// maxKeys bounds the keys that are used of a set.
	maxKeys = 100
	// maxTried bounds the keys that are tried for one token, so that an invalid token does
	// not cost a hundred verifications.
	maxTried = 8
	// minRSABits is the minimum of RFC 7518, 3.3.
	minRSABits = 2048
)

var errNoKeySet = errors.New("it is not a JSON Web Key Set")

// Keys are the public keys of an issuer. They are immutable.
type Keys struct {
	keys []publicKey
}

// publicKey is a key with the algorithms that it may verify.
type publicKey struct {
	id         string
	key        any
	algorithms []jose.SignatureAlgorithm
}

// ParseKeys parses a JSON Web Key Set (RFC 7517). It ignores every entry that is not a
// public key for signatures, as the RFC requires. A symmetric key, which signs and
// verifies, must never be accepted from a published set. It is an error if no key is left.
// Errors contain nothing of the input.
func ParseKeys(text []byte) (*Keys, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if len(text) > MaxKeySet {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxKeySet)
	}
	if json.Unmarshal(text, &set) != nil {
		return nil, errNoKeySet
	}
	keys := &Keys{}
	for _, raw := range set.Keys {
		if key, usable := parseKey(raw); usable && len(keys.keys) < maxKeys {
			keys.keys = append(keys.keys, key)
		}
	}
	if len(keys.keys) == 0 {
		return nil, errors.New("it holds no public key for signatures")
	}
	return keys, nil
}

func parseKey(raw json.RawMessage) (publicKey, bool) {
	var parsed jose.JSONWebKey
	if parsed.UnmarshalJSON(raw) != nil || !parsed.Valid() || (parsed.Use != "" && parsed.Use != "sig") {
		return publicKey{}, false
	}
	parsed = parsed.Public() // of a private key that was published by mistake
	algorithms := algorithmsOf(parsed.Key)
	if parsed.Algorithm != "" {
		named := jose.SignatureAlgorithm(parsed.Algorithm)
		if !slices.Contains(algorithms, named) {
			return publicKey{}, false
		}
		algorithms = []jose.SignatureAlgorithm{named}
	}
	return publicKey{id: parsed.KeyID, key: parsed.Key, algorithms: algorithms}, len(algorithms) > 0
}

// algorithmsOf returns the algorithms that a key may verify. There are none if it is not a
// public key.
func algorithmsOf(key any) []jose.SignatureAlgorithm {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSABits {
			return nil
		}
		return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
	case *ecdsa.PublicKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return []jose.SignatureAlgorithm{jose.ES256}
		case 384:
			return []jose.SignatureAlgorithm{jose.ES384}
		case 521:
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return nil
}

// candidates returns the keys that may have signed a token. known is false if the token
// names a key that is not in the set.
func (k *Keys) candidates(id string, algorithm jose.SignatureAlgorithm) (candidates []publicKey, known bool) {
	for _, key := range k.keys {
		if id != "" && key.id != id {
			continue
		}
		known = true
		if slices.Contains(key.algorithms, algorithm) && len(candidates) < maxTried {
			candidates = append(candidates, key)
		}
	}
	return candidates, known || id == ""
}
