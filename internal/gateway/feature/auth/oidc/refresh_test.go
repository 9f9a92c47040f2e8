package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// fixed is a provider that is always the same.
type fixed struct{ *Provider }

func (f fixed) Last() *Provider { return f.Provider }

func (fixed) Newer(context.Context, *Provider) *Provider { return nil }

// renewer renews sessions at a provider that always gives out new tokens.
type renewer struct {
	t      *testing.T
	client *Client
	source fixed
	asked  atomic.Int64
	more   string // a part of each refresh token
}

func newRenewer(t *testing.T) *renewer {
	r := &renewer{t: t, client: testClient(t, nil)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token": "x", "token_type": "Bearer", "expires_in": 600, "refresh_token": "next %d%s"}`, r.asked.Add(1), r.more)
	}))
	t.Cleanup(server.Close)
	r.source = fixed{&Provider{TokenURL: server.URL}}
	return r
}

// renew renews the session of a number at a time.
func (r *renewer) renew(number int, at time.Time) {
	r.t.Helper()
	b := browser(nil)
	b.Now = at
	s := &Session{IDToken: "a.e30.c", RefreshToken: fmt.Sprint(number), Expires: now.Unix(), Ends: now.Unix() + 7200}
	if _, cookies, err := r.client.Fresh(r.t.Context(), r.source, http.DefaultClient, b, s); err != nil || len(cookies) == 0 {
		r.t.Fatalf("session %d: %d cookies, %v", number, len(cookies), err)
	}
}

func (r *renewer) remembered() int {
	r.client.share.mu.Lock()
	defer r.client.share.mu.Unlock()
	return len(r.client.share.renewed)
}

func TestTheOldestRenewalIsForgottenFirst(t *testing.T) {
	r := newRenewer(t)
	for i := range maxRemembered {
		r.renew(i, now.Add(time.Duration(i)*time.Millisecond))
	}
	later := now.Add(time.Duration(maxRemembered) * time.Millisecond)
	r.renew(maxRemembered, later)
	if n := r.remembered(); n != maxRemembered {
		t.Errorf("%d are remembered", n)
	}
	before := r.asked.Load()
	r.renew(1, later)
	r.renew(maxRemembered, later)
	if n := r.asked.Load() - before; n != 0 {
		t.Errorf("the provider was asked again for %d that are not the oldest", n)
	}
	r.renew(0, later)
	if n := r.asked.Load() - before; n != 1 {
		t.Errorf("the provider was asked %d times for the oldest", n)
	}
}

func TestRenewalsAreForgottenInTime(t *testing.T) {
	r := newRenewer(t)
	for i := range 100 {
		r.renew(i, now)
	}
	r.renew(100, now.Add(remembered))
	if n := r.remembered(); n != 1 {
		t.Errorf("%d are remembered", n)
	}
}

func TestLongSessionsAreRememberedInBounds(t *testing.T) {
	r := newRenewer(t)
	r.more = strings.Repeat("x", 12000)
	for i := range 500 {
		r.renew(i, now)
	}
	if got := r.client.share.holding(); got.Bytes > maxRememberedBytes || got.Bytes < got.Results*12000 {
		t.Errorf("remembered is %+v", got)
	}
	before := r.asked.Load()
	r.renew(499, now)
	if r.asked.Load() != before {
		t.Error("the last one is not remembered")
	}
}

// mined is a transport with a defect.
type mined struct{}

func (mined) RoundTrip(*http.Request) (*http.Response, error) { panic("a defect") }

// Others may wait for the result, so there must be one.
func TestAPanicFailsOneRenewalAlone(t *testing.T) {
	r := newRenewer(t)
	doing := make(chan string, 1)
	r.client.share.panics = func(what string, _ any, _ []byte) { doing <- what }
	s := &Session{IDToken: "a.e30.c", RefreshToken: "1", Expires: now.Unix(), Ends: now.Unix() + 7200}
	_, _, err := r.client.Fresh(t.Context(), r.source, &http.Client{Transport: mined{}}, browser(nil), s)
	if !errors.Is(err, panics.ErrPanicked) {
		t.Errorf("got %v", err)
	}
	if got := <-doing; got != "renew a session" {
		t.Errorf("told of %q", got)
	}
	r.renew(1, now.Add(2*time.Second)) // it is tried again
	if n := len(r.client.share.renewing); n != 0 {
		t.Errorf("%d renewals run", n)
	}
}
