package auth

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Policy defines how a client authenticates. Exactly one of the five is set.
type Policy struct {
	APIKey   *APIKey
	Basic    *Basic
	JWT      *JWT
	External *External
	OIDC     *OIDC

	// ID tells what two rules with the same ID have in common: they let in the same clients,
	// and tell backends the same about them. Empty: the rule has this in common with none.
	ID string
	// Hidden are the header fields that the backend must not get from the client: the
	// client's key, and fields that tell the backend who the client is. Names are in
	// canonical form. Underscores are replaced by hyphens, because a backend may treat them
	// alike. Compile sets it.
	Hidden []string
	// Judged are the header fields that a Service was shown. The backend gets them as they were shown: not under names with
	// underscores, and not as trailers. Names are as in Hidden. Compile sets it.
	Judged []string
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

// External asks a Service about each request.
type External struct {
	// Ref is the Service. Its Weight means nothing.
	Ref model.BackendRef
	// GRPC tells that the Service is asked as envoy.service.auth.v3 says. Otherwise it is asked with an HTTP request.
	GRPC bool
	// Path is where the Service is asked over HTTP.
	Path string
	// MaxBody is the size of the largest body. The Service is shown it. 0: it is shown none.
	MaxBody int64
	// RequestHeaders are the fields of the request that the Service gets.
	RequestHeaders []string
	// BackendHeaders are the fields of the answer that the backend gets.
	BackendHeaders []string
	// IdentityHeader is the field of the answer that says who the client is. Empty: nothing does.
	IdentityHeader string
	// Timeout bounds the time until the answer has come.
	Timeout time.Duration
	// LetIn lets requests in while the Service gives no answer.
	LetIn bool

	// Backend is the Service. Nil: it must not be asked, and nobody is let in. Compile sets it.
	Backend *model.Backend
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
	// Required are the claims that the token must have. All of them must hold.
	Required []RequiredClaim
}

// RequiredClaim is a claim that must be one of some values, or a list that has one of them (token.Claims.Has).
type RequiredClaim struct {
	Claim  string
	Values []string
}

// ClaimHeader is a claim of a token and the header field that carries it. A dot in the
// claim's name leads into an object.
type ClaimHeader struct {
	Claim  string
	Header string
}

// hide collects the header fields that the backend must not get from the client.
func (a *Policy) hide() {
	var names []string
	switch {
	case a.APIKey != nil:
		names = []string{a.APIKey.Header, a.APIKey.ClientHeader}
	case a.Basic != nil:
		names = []string{"Authorization", a.Basic.UserHeader}
	case a.External != nil:
		names = append(slices.Clone(a.External.BackendHeaders), a.External.IdentityHeader)
	case a.OIDC != nil:
		for _, claim := range a.OIDC.ClaimHeaders {
			names = append(names, claim.Header)
		}
		if a.OIDC.Forward != ForwardNone {
			names = append(names, "Authorization")
		}
	default:
		for _, claim := range a.JWT.ClaimHeaders {
			names = append(names, claim.Header)
		}
	}
	a.Hidden, a.Judged = folded(names), nil
	if a.External != nil {
		a.Judged = folded(a.External.RequestHeaders)
	}
}

// folded returns the names in the form in which they are compared (fieldname.Folded).
func folded(names []string) []string {
	var list []string
	for _, name := range names {
		if name != "" {
			list = append(list, fieldname.Folded(name))
		}
	}
	return list
}
