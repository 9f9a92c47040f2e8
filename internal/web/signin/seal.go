package signin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// Sealer encrypts texts for those who only carry them. What it opens is what it sealed, with the same key and purpose.
type Sealer struct {
	aead cipher.AEAD
	// nonces is the key for nonces that follow from the content, nil if they are random.
	nonces []byte
}

var errSealed = errors.New("this was not sealed here")

// encoding has one text for each content.
var encoding = base64.RawURLEncoding.Strict()

// NewSealer derives the keys of a purpose, in which the name of the program is. A sealer that repeats makes the same of the same:
// it can be compared, and tells nothing else.
func NewSealer(key []byte, purpose string, repeats bool) (*Sealer, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, purpose, 64)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	block, err := aes.NewCipher(derived[:32])
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	s := &Sealer{aead: aead}
	if repeats {
		s.nonces = derived[32:]
	}
	return s, nil
}

// Seal encrypts a text. What it returns has letters, digits, - and _ only.
func (s *Sealer) Seal(content []byte) string {
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(content)+s.aead.Overhead())
	if s.nonces == nil {
		_, _ = rand.Read(nonce) // never fails: the program ends instead
	} else {
		copy(nonce, s.nonce(content))
	}
	return encoding.EncodeToString(s.aead.Seal(nonce, nonce, content, nil))
}

func (s *Sealer) nonce(content []byte) []byte {
	sum := hmac.New(sha256.New, s.nonces)
	sum.Write(content)
	return sum.Sum(nil)[:s.aead.NonceSize()]
}

// Open returns what was sealed, and an error for everything else.
func (s *Sealer) Open(sealed string) ([]byte, error) {
	raw, err := encoding.DecodeString(sealed)
	if err != nil || len(raw) < s.aead.NonceSize() {
		return nil, errSealed
	}
	nonce, text := raw[:s.aead.NonceSize()], raw[s.aead.NonceSize():]
	content, err := s.aead.Open(nil, nonce, text, nil)
	if err != nil || (s.nonces != nil && !hmac.Equal(nonce, s.nonce(content))) {
		return nil, errSealed
	}
	return content, nil
}
