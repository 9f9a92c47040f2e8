package oidc

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
)

// Session is what a cookie remembers of a browser that has logged in.
type Session struct {
	// IDToken is the token that was checked. AccessToken is empty unless the backend gets it.
	IDToken      string `json:"i"`
	AccessToken  string `json:"a,omitempty"`
	RefreshToken string `json:"r,omitempty"`
	// Nonce is that of the log-in. No ID token may have another one: OpenID Connect Core, 12.2.
	Nonce string `json:"n"`
	// Expires is when the tokens expire, and Ends when the session does. Both are in seconds since 1970.
	Expires int64 `json:"e"`
	Ends    int64 `json:"u"`
}

// Claims are those of the ID token. It was checked before it was encrypted.
func (s *Session) Claims() token.Claims {
	claims := token.Claims{}
	parts := strings.Split(s.IDToken, ".")
	if len(parts) != 3 {
		return claims
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return token.Claims{}
	}
	return claims
}

// maxTokens is how many bytes the tokens of a session may have together. With more it cannot fit cookies: a text that is sealed is
// a third longer than what is in it.
const maxTokens = maxSealed * 3 / 4

func (s *Session) size() int { return len(s.IDToken) + len(s.AccessToken) + len(s.RefreshToken) }

// unusable tells why a session that was just made is of no use.
func (s *Session) unusable(now time.Time) error {
	switch {
	case s.expired(now):
		return &Failure{Kind: BadToken} // the next request would log in or renew again
	case s.size() > maxTokens:
		return &Failure{Kind: TooLarge} // before it takes several times as much memory
	}
	return nil
}

// expired reports whether the tokens have expired.
func (s *Session) expired(now time.Time) bool { return now.Unix() >= s.Expires }

// ended reports whether the session has ended.
func (s *Session) ended(now time.Time) bool { return now.Unix() >= s.Ends }

// pending is what a cookie remembers of a log-in that has begun. It binds the log-in to the browser.
type pending struct {
	// State begins with the slot of the cookie.
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Target   string `json:"t"`
	Ends     int64  `json:"u"`
}
