package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
)

// Config is a client of a provider.
type Config struct {
	// Gateway and Scope tell which sessions are the same: those of routes of one gateway with the same scope.
	Gateway, Scope string
	Issuer         string
	ClientID       string
	// Secrets are the client secret, and the one before while both are known. The first one is used.
	Secrets []string
	Scopes  []string
	// RedirectPath is where the provider sends browsers back to.
	RedirectPath string
	// AfterLogout is the page after a log-out. Empty: the provider shows one.
	AfterLogout string
	// Length is how long a session lasts at the most.
	Length time.Duration
	// KeepAccessToken keeps the access token in the session. KeepIDToken tells that the ID token is needed for more than its
	// claims, so that it must not be over: a provider need not send another one (OpenID Connect Core, 12.2).
	KeepAccessToken, KeepIDToken bool
}

// Source is where the document of the provider comes from.
type Source interface {
	// Last returns the last document, or nil. It does not wait.
	Last() *Provider
	// Newer returns one that is newer, or nil.
	Newer(ctx context.Context, than *Provider) *Provider
}

// Client logs browsers in for the routes of one scope.
type Client struct {
	config Config
	box    *box
	prefix string
	share  *share
}

// NewClient makes a client. Its cookies can be read by one with the same configuration only, in whatever replica.
func NewClient(config Config, traffic *Traffic) (*Client, error) {
	opener, err := newBox(config.Secrets, config.Gateway, config.Scope, config.Issuer, config.ClientID)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(config.Gateway + "\x00" + config.Scope))
	c := &Client{config: config, box: opener, prefix: namePrefix + hex.EncodeToString(sum[:8])}
	c.share = traffic.share(c.key())
	return c, nil
}

func (c *Client) key() shareKey { return shareKey{c.prefix, c.config.Issuer, c.config.ClientID} }

// Browser is what a request tells about the browser that sends it.
type Browser struct {
	// Origin is the scheme and the host at which the browser sees the route.
	Scheme, Host string
	Cookies      Cookies
	Now          time.Time
}

func (c *Client) jar(b *Browser) jar { return jar{prefix: c.prefix, secure: b.Scheme == "https"} }

// RedirectURI is where the provider sends the browser back to.
func (c *Client) redirectURI(b *Browser) string {
	return b.Scheme + "://" + b.Host + c.config.RedirectPath
}

// Session returns the session of a browser. It returns false if it has none that lasts.
func (c *Client) Session(b *Browser) (*Session, bool) {
	text, found := c.jar(b).join(b.Cookies)
	if !found {
		return nil, false
	}
	plain, ok := c.box.open(forSession, text)
	if !ok {
		return nil, false
	}
	s := &Session{}
	if json.Unmarshal(plain, s) != nil || s.ended(b.Now) {
		return nil, false
	}
	return s, true
}

// Keep makes the cookies of a session, and removes what was there before. It fails if the session is too large for cookies.
func (c *Client) Keep(b *Browser, s *Session) ([]*http.Cookie, error) {
	sealed, err := c.seal(s)
	if err != nil {
		return nil, err
	}
	return c.cookies(b, s, sealed)
}

// seal encrypts a session for cookies, which must have room for it.
func (c *Client) seal(s *Session) (string, error) {
	if s.size() > maxTokens {
		return "", &Failure{Kind: TooLarge}
	}
	plain, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("write a session: %w", err)
	}
	sealed := c.box.seal(forSession, plain)
	if len(sealed) > maxSealed { // what a token is written with counts too
		return "", &Failure{Kind: TooLarge}
	}
	return sealed, nil
}

// cookies makes the cookies of a session that was sealed.
func (c *Client) cookies(b *Browser, s *Session, sealed string) ([]*http.Cookie, error) {
	j := c.jar(b)
	cookies, fits := j.split(sealed, int(s.Ends-b.Now.Unix()))
	if !fits {
		return nil, &Failure{Kind: TooLarge}
	}
	return slices.Concat(cookies, j.clearFrom(b.Cookies, len(cookies))), nil
}

// Forget removes the session of a browser.
func (c *Client) Forget(b *Browser) []*http.Cookie { return c.jar(b).clear(b.Cookies) }

// Kind is how a log-in or a refresh has ended.
type Kind int

const (
	// OK is one that has succeeded.
	OK Kind = iota
	// BadState is one that this browser has not begun, or too long ago.
	BadState
	// Refused is one that the provider has refused: it says so, or it takes the code or the refresh token no more.
	Refused
	// BadToken is one with an ID token that is not valid.
	BadToken
	// BadClient is one for which the provider does not take the client or its secret.
	BadClient
	// Unavailable is one for which the provider gave no answer that counts.
	Unavailable
	// Busy is one for which the provider was not asked, because too many others are under way.
	Busy
	// TooLarge is one with tokens that are too large for cookies.
	TooLarge
	// Kinds is how many there are.
	Kinds
)

func (k Kind) String() string {
	return [Kinds]string{"ok", "state", "refused", "token", "client", "unavailable", "busy", "too_large"}[k]
}

// Failure is why a log-in or a refresh has failed. It contains nothing of what a client or the provider has sent.
type Failure struct{ Kind Kind }

func (f *Failure) Error() string { return "log-in: " + f.Kind.String() }

// trusted checks who an ID token is for, beyond its audience: OpenID Connect Core, 3.1.3.7.
func (c *Client) trusted(claims token.Claims) bool {
	party, named := claims["azp"]
	if named && party != any(c.config.ClientID) {
		return false
	}
	audiences, several := claims["aud"].([]any)
	return claims.Subject() != "" && (named || !several || len(audiences) == 1)
}

// scopes are those that are asked for. openid is always one of them.
func (c *Client) scopes() string {
	scopes := c.config.Scopes
	if !slices.Contains(scopes, "openid") {
		scopes = slices.Concat([]string{"openid"}, scopes)
	}
	return strings.Join(scopes, " ")
}

// KindOf returns how a log-in or a refresh has ended.
func KindOf(err error) Kind {
	if err == nil {
		return OK
	}
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Kind
	}
	return Unavailable
}
