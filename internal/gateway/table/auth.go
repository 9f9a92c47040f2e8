package table

import (
	"crypto/sha256"

	"github.com/slipway-dev/slipway/internal/gateway/token"
)

// Auth says how a client proves who it is. One of the three is set.
type Auth struct {
	APIKey *APIKey
	Basic  *Basic
	JWT    *JWT

	// Hidden are the headers that are not the client's to send on: its key, and what tells
	// the backend who it is. In canonical form, with a hyphen for every underscore, for which a
	// backend may take it.
	Hidden []string
}

// APIKey asks for a key.
type APIKey struct {
	// Header and QueryParam are where the key may be; either may be empty, not both.
	Header     string
	QueryParam string
	// ClientHeader is the header that tells the backend the client; empty: none.
	ClientHeader string

	clients map[[sha256.Size]byte]string
}

// Client returns whose key it is. Hashes are compared, not keys: how long it takes
// depends on the hash of what was sent, which says nothing about a valid key.
func (a *APIKey) Client(key string) (string, bool) {
	client, found := a.clients[sha256.Sum256([]byte(key))]
	return client, found
}

// Basic asks for a user name and a password.
type Basic struct {
	// Realm is what a browser shows; empty: the name of the gateway.
	Realm string
	// UserHeader is the header that tells the backend the user; empty: none.
	UserHeader string
	// Users are the bcrypt hashes of the passwords that are valid, by user.
	Users map[string][][]byte
}

// JWT asks for a signed token.
type JWT struct {
	Issuer string
	// Audiences of which the token must name one; empty: any.
	Audiences []string
	// JWKSURL is where the keys are, Keys the keys themselves. One of the two is set.
	JWKSURL string
	Keys    *token.Keys
	// ClaimHeaders are the claims that the backend gets.
	ClaimHeaders []ClaimHeader
}

// ClaimHeader is a claim of a token and the header that it becomes. A dot in the claim
// leads into an object.
type ClaimHeader struct {
	Claim  string
	Header string
}
