package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/slipway-dev/slipway/internal/dialguard"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
)

const (
	// tokenTimeout bounds one request for tokens.
	tokenTimeout = 10 * time.Second
	// maxAnswer is how much of an answer to one is read, in bytes. It has room for tokens that are not kept.
	maxAnswer = 64 << 10
)

// bounded reads no more of an answer than maxAnswer. A longer one is an error, and so none that counts.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}

// CloseIdleConnections is what http.Client calls.
func (b bounded) CloseIdleConnections() {
	if closer, ok := b.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// NewHTTPClient returns the client for requests for tokens. It follows no redirect: the request holds the client secret.
func NewHTTPClient(guard *dialguard.Guard) *http.Client {
	transport := &http.Transport{
		Proxy: guard.Proxy, DialContext: guard.DialContext, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 4, MaxConnsPerHost: 4 * (maxRedeeming + maxRenewing), IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{Transport: bounded{transport}, Timeout: tokenTimeout, CheckRedirect: noRedirect}
}

func (c *Client) oauth(p *Provider, b *Browser) *oauth2.Config {
	return &oauth2.Config{
		ClientID: c.config.ClientID, ClientSecret: c.config.Secrets[0], RedirectURL: c.redirectURI(b),
		Endpoint: oauth2.Endpoint{TokenURL: p.TokenURL, AuthStyle: p.Style},
	}
}

// redeem exchanges a code for tokens.
func (c *Client) redeem(ctx context.Context, source Source, client *http.Client, b *Browser, login *pending, code string) (*Session, error) {
	provider := source.Last()
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	got, err := c.oauth(provider, b).Exchange(ctx, code, oauth2.VerifierOption(login.Verifier))
	if err != nil {
		return nil, failureOf(err)
	}
	text, _ := got.Extra("id_token").(string)
	claims, err := c.verify(ctx, source, text, b.Now)
	if err != nil {
		return nil, err
	}
	nonce, _ := claims["nonce"].(string)
	if subtle.ConstantTimeCompare([]byte(nonce), []byte(login.Nonce)) != 1 {
		return nil, &Failure{Kind: BadToken}
	}
	s := &Session{IDToken: text, RefreshToken: got.RefreshToken, Nonce: login.Nonce, Ends: b.Now.Add(c.config.Length).Unix()}
	c.take(s, got, claims, b.Now)
	if err := s.unusable(b.Now); err != nil {
		return nil, err
	}
	return s, nil
}

// renew gets new tokens for a session. Its end stays.
func (c *Client) renew(ctx context.Context, source Source, client *http.Client, b *Browser, s *Session) (*Session, error) {
	provider := source.Last()
	if provider == nil {
		return nil, &Failure{Kind: Unavailable}
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	got, err := c.oauth(provider, b).TokenSource(ctx, &oauth2.Token{RefreshToken: s.RefreshToken}).Token()
	if err != nil {
		return nil, failureOf(err)
	}
	next := *s
	if got.RefreshToken != "" {
		next.RefreshToken = got.RefreshToken
	}
	claims := token.Claims(nil)
	if text, _ := got.Extra("id_token").(string); text != "" {
		if claims, err = c.verify(ctx, source, text, b.Now); err != nil {
			return nil, err
		}
		if claims.Subject() != s.Claims().Subject() {
			return nil, &Failure{Kind: BadToken} // of somebody else
		}
		if nonce, has := claims["nonce"]; has && nonce != any(s.Nonce) {
			return nil, &Failure{Kind: BadToken} // of another log-in
		}
		next.IDToken = text
	} else if c.config.KeepIDToken {
		return nil, &Failure{Kind: BadToken} // the backend would get the one from before, which is over
	}
	c.take(&next, got, claims, b.Now)
	if err := next.unusable(b.Now); err != nil {
		return nil, err
	}
	return &next, nil
}

// take notes the access token, and when the tokens expire: the first of them. claims are nil without a new ID token.
func (c *Client) take(s *Session, got *oauth2.Token, claims token.Claims, now time.Time) {
	if c.config.KeepAccessToken && isBearer(got.AccessToken) {
		s.AccessToken = got.AccessToken
	}
	s.Expires = s.Ends
	counts := c.config.KeepAccessToken || s.RefreshToken != "" // else nobody gets the access token, nor a new one
	if counts && got.ExpiresIn > 0 && got.ExpiresIn < s.Ends-now.Unix() {
		s.Expires = now.Unix() + got.ExpiresIn
	}
	if ends, ok := claims.Expiry(); ok && ends.Unix() < s.Expires {
		s.Expires = ends.Unix()
	}
}

// isBearer reports whether a token can be sent in a header: RFC 6750, 2.1.
func isBearer(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == ',' })
}

// verify checks an ID token, with newer keys if its key is not known.
func (c *Client) verify(ctx context.Context, source Source, text string, now time.Time) (token.Claims, error) {
	rules := token.Rules{Issuer: c.config.Issuer, Audiences: []string{c.config.ClientID}}
	provider := source.Last()
	claims, err := provider.Keys.Verify(text, rules, now)
	if errors.Is(err, token.ErrUnknownKey) {
		if newer := source.Newer(ctx, provider); newer != nil {
			claims, err = newer.Keys.Verify(text, rules, now)
		}
	}
	if err != nil || !c.trusted(claims) {
		return nil, &Failure{Kind: BadToken}
	}
	return claims, nil
}

// failureOf tells what an answer to a request for tokens means for the session.
func failureOf(err error) *Failure {
	answer, answered := errors.AsType[*oauth2.RetrieveError](err)
	if !answered || answer.Response == nil {
		return &Failure{Kind: Unavailable}
	}
	switch status := answer.Response.StatusCode; {
	case answer.ErrorCode == "invalid_client" || answer.ErrorCode == "unauthorized_client" || status == http.StatusUnauthorized:
		return &Failure{Kind: BadClient}
	case answer.ErrorCode == "invalid_grant": // no other answer says that the code or the refresh token is over
		return &Failure{Kind: Refused}
	default:
		return &Failure{Kind: Unavailable}
	}
}
