package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// loginTime is how long a user may take to log in.
const loginTime = 10 * time.Minute

// Begin begins a log-in. It returns where the browser is sent, and the cookies that bind the log-in to it. target is the path
// and the query that the browser asked for.
func (c *Client) Begin(p *Provider, b *Browser, target string) (location string, cookies []*http.Cookie, err error) {
	j := c.jar(b)
	slot := j.freeSlot(b.Cookies)
	login := pending{
		State: slot + rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Target: SafeTarget(target),
		Ends: b.Now.Add(loginTime).Unix(),
	}
	plain, err := json.Marshal(login)
	if err != nil {
		return "", nil, fmt.Errorf("write a log-in: %w", err)
	}
	cookie := j.cookie(j.login(slot), c.box.seal(forLogin, plain), int(loginTime/time.Second))
	return c.authURL(p, b, &login), []*http.Cookie{cookie}, nil
}

func (c *Client) authURL(p *Provider, b *Browser, login *pending) string {
	query := url.Values{
		"response_type": {"code"}, "client_id": {c.config.ClientID}, "redirect_uri": {c.redirectURI(b)}, "scope": {c.scopes()},
		"state": {login.State}, "nonce": {login.Nonce},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(login.Verifier)}, "code_challenge_method": {"S256"},
	}
	return extend(p.AuthURL, query)
}

// extend adds a query to an address, which may have one.
func extend(address string, query url.Values) string {
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + query.Encode()
}

// Finish ends a log-in that the provider has sent back with a query. It returns the session and where the browser is sent.
// cookies take the log-in away. They are not nil once the provider was asked, so that none is tried twice.
func (c *Client) Finish(ctx context.Context, source Source, client *http.Client, b *Browser, query string) (s *Session, target string, cookies []*http.Cookie, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, "", nil, &Failure{Kind: BadState}
	}
	login, cookies, found := c.begun(b, values)
	if !found {
		return nil, "", cookies, &Failure{Kind: BadState}
	}
	provider := source.Last()
	if provider == nil {
		return nil, "", cookies, &Failure{Kind: Unavailable}
	}
	if issuers := values["iss"]; len(issuers) > 1 || len(issuers) == 1 && issuers[0] != c.config.Issuer || len(issuers) == 0 && provider.NamesItself {
		return nil, "", cookies, &Failure{Kind: BadState} // the answer of another provider
	}
	if values.Has("error") {
		return nil, "", cookies, &Failure{Kind: Refused}
	}
	codes := values["code"]
	if len(codes) != 1 || codes[0] == "" {
		return nil, "", cookies, &Failure{Kind: BadState}
	}
	if !take(c.share.redeeming) {
		return nil, "", nil, &Failure{Kind: Busy} // the log-in stays, so that the browser can try again
	}
	defer func() { <-c.share.redeeming }()
	s, err = c.redeem(ctx, source, client, b, login, codes[0])
	return s, SafeTarget(login.Target), cookies, err
}

// begun finds the log-in of a browser that an answer is for.
func (c *Client) begun(b *Browser, values url.Values) (*pending, []*http.Cookie, bool) {
	states := values["state"]
	if len(states) != 1 || states[0] == "" {
		return nil, nil, false
	}
	j := c.jar(b)
	name := j.login(states[0][:1])
	text, has := b.Cookies[name]
	if !has {
		return nil, nil, false
	}
	cookies := []*http.Cookie{j.cookie(name, "", -1)}
	plain, ok := c.box.open(forLogin, text)
	login := &pending{}
	if !ok || json.Unmarshal(plain, login) != nil || login.State == "" {
		return nil, cookies, false
	}
	if subtle.ConstantTimeCompare([]byte(login.State), []byte(states[0])) != 1 {
		return nil, nil, false // another site may have sent the browser here, which must not take a log-in away
	}
	return login, cookies, b.Now.Unix() < login.Ends
}

// LogOutURL is where a browser is sent to log out at the provider. If the provider has no such place, it is the page after the
// log-out, which may be empty. s may be nil.
func (c *Client) LogOutURL(p *Provider, b *Browser, s *Session) string {
	if p == nil || p.EndSessionURL == "" {
		return c.config.AfterLogout
	}
	query := url.Values{"client_id": {c.config.ClientID}}
	if c.config.AfterLogout != "" {
		query.Set("post_logout_redirect_uri", b.Scheme+"://"+b.Host+c.config.AfterLogout)
	}
	if s != nil && len(s.IDToken) <= maxHint {
		query.Set("id_token_hint", s.IDToken)
	}
	return extend(p.EndSessionURL, query)
}

// maxHint is how large an ID token in an address may be. Servers refuse longer addresses.
const maxHint = 4 << 10
