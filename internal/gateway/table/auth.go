package table

import (
	"crypto/sha256"

	"github.com/slipway-dev/slipway/internal/gateway/token"
)

// Auth defines how a client authenticates. Exactly one of the three is set.
type Auth struct {
	APIKey *APIKey
	Basic  *Basic
	JWT    *JWT

	// ID tells what two rules with the same ID have in common: they let in the same clients,
	// and tell backends the same about them. Empty: the rule has this in common with none.
	ID string
	// Hidden are the header fields that the backend must not get from the client: the
	// client's key, and fields that tell the backend who the client is. Names are in
	// canonical form. Underscores are replaced by hyphens, because a backend may treat them
	// alike. Compile sets it.
	Hidden []string
}

// APIKey requires a key.
type APIKey struct {
	// Header and QueryParam say where the key is looked for. At least one is set.
	Header     string
	QueryParam string
	// ClientHeader is the header that tells the backend the client's name. Empty: none.
	ClientHeader string

	// Clients are the owners of the valid keys, by the hash of the key.
	Clients map[[sha256.Size]byte]string
}

// Client returns the owner of a key. It compares hashes, not keys. So the time depends only
// on the hash of what was sent, which tells nothing about a valid key.
func (a *APIKey) Client(key string) (string, bool) {
	client, found := a.Clients[sha256.Sum256([]byte(key))]
	return client, found
}

// Basic requires a user name and a password.
type Basic struct {
	// Realm is shown by browsers. Empty: the name of the gateway.
	Realm string
	// UserHeader is the header that tells the backend the user's name. Empty: none.
	UserHeader string
	// Users are the bcrypt hashes of the valid passwords, by user.
	Users map[string][][]byte
}

// JWT requires a signed token.
type JWT struct {
	Issuer string
	// Audiences: the token must name at least one of them. Empty: any audience.
	Audiences []string
	// JWKSURL is the URL of the keys, Keys are the keys themselves. Exactly one is set.
	JWKSURL string
	Keys    *token.Keys
	// ClaimHeaders are the claims that are sent to the backend.
	ClaimHeaders []ClaimHeader
}

// ClaimHeader is a claim of a token and the header field that carries it. A dot in the
// claim's name leads into an object.
type ClaimHeader struct {
	Claim  string
	Header string
}
