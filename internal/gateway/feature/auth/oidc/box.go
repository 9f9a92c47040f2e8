package oidc

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
)

// purpose is what a text was encrypted for. It cannot be used for another one.
type purpose string

const (
	forSession purpose = "session"
	forLogin   purpose = "login"
)

var encoding = base64.RawURLEncoding.Strict()

// box encrypts and decrypts texts. Only a box with the same secret and the same context can decrypt them.
type box struct {
	// keys are those of the current secret and of the one before. The first encrypts.
	keys []cipher.AEAD
}

// newBox makes a box for a context: the names of whatever must not read each other's texts.
func newBox(secrets []string, context ...string) (*box, error) {
	info := []byte("slipway oidc cookie 1")
	for _, part := range context {
		info = binary.BigEndian.AppendUint32(info, uint32(len(part)))
		info = append(info, part...)
	}
	if len(secrets) == 0 {
		return nil, errors.New("there is no client secret")
	}
	b := &box{}
	for _, secret := range secrets {
		if len(secret) < auth.MinClientSecret {
			return nil, fmt.Errorf("the client secret is shorter than %d bytes", auth.MinClientSecret)
		}
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, string(info), chacha20poly1305.KeySize)
		if err != nil {
			return nil, fmt.Errorf("derive a key: %w", err)
		}
		aead, err := chacha20poly1305.NewX(key)
		if err != nil {
			return nil, fmt.Errorf("use a key: %w", err)
		}
		b.keys = append(b.keys, aead)
	}
	return b, nil
}

// seal encrypts a text. Its nonce is random: it has 24 bytes, so none comes twice.
func (b *box) seal(what purpose, plain []byte) string {
	nonce := make([]byte, chacha20poly1305.NonceSizeX, chacha20poly1305.NonceSizeX+len(plain)+chacha20poly1305.Overhead)
	_, _ = rand.Read(nonce) // never fails
	return encoding.EncodeToString(b.keys[0].Seal(nonce, nonce, plain, []byte(what)))
}

// open decrypts what seal has encrypted for the same purpose. It returns false for everything else.
func (b *box) open(what purpose, text string) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, false // the decoder would skip them
	}
	sealed, err := encoding.DecodeString(text)
	if err != nil || len(sealed) < chacha20poly1305.NonceSizeX+chacha20poly1305.Overhead {
		return nil, false
	}
	nonce, sealed := sealed[:chacha20poly1305.NonceSizeX], sealed[chacha20poly1305.NonceSizeX:]
	for _, key := range b.keys {
		if plain, err := key.Open(nil, nonce, sealed, []byte(what)); err == nil {
			return plain, true
		}
	}
	return nil, false
}
