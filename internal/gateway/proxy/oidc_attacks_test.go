package proxy

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	authserve "github.com/slipway-dev/slipway/internal/gateway/feature/auth/serve"
)

// signedWith signs claims with HS256.
func signedWith(t *testing.T, key []byte) func(map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "first"))
	if err != nil {
		t.Fatal(err)
	}
	return func(claims map[string]any) string {
		text, err := json.Marshal(claims)
		if err != nil {
			t.Error(err)
		}
		signed, err := signer.Sign(text)
		if err != nil {
			t.Error(err)
			return ""
		}
		compact, err := signed.CompactSerialize()
		if err != nil {
			t.Error(err)
		}
		return compact
	}
}

func unsigned(claims map[string]any) string {
	text, _ := json.Marshal(claims)
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(text) + "."
}

func TestForgedIDTokensAreRefused(t *testing.T) {
	p, g, requests, _ := startLogin(t)
	var published jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(p.keySet()), &published); err != nil {
		t.Fatal(err)
	}
	public, err := json.Marshal(published.Keys[0])
	if err != nil {
		t.Fatal(err)
	}
	other := newIssuer(t)
	for name, test := range map[string]struct {
		sign func(map[string]any) string
		code int
	}{
		"good":                         {p.issuer.token, http.StatusFound},
		"alg none":                     {unsigned, http.StatusForbidden},
		"HS256 with the public key":    {signedWith(t, public), http.StatusForbidden},
		"HS256 with the client secret": {signedWith(t, []byte(clientSecret)), http.StatusForbidden},
		"the key of somebody else":     {other.token, http.StatusForbidden},
		"no token":                     {func(map[string]any) string { return "canary" }, http.StatusForbidden},
		"an empty one":                 {func(map[string]any) string { return "" }, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			p.set(func() { p.sign = test.sign })
			alice := newPerson(t, g)
			response := alice.open(alice.comeBack("/"))
			want(t, "status", response.StatusCode, test.code)
			want(t, "a session is set", strings.Contains(cookiesOf(alice), ".s0="), test.code == http.StatusFound)
			want(t, "canary", strings.Contains(response.Text, "canary"), false)
		})
	}
	want(t, "requests that reached the backend", len(requests), 0)
}

func TestATokenEndpointThatDoesNotBehave(t *testing.T) {
	stolen := make(chan string, 100)
	thief := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		stolen <- r.Header.Get("Authorization") + string(text)
	})
	for name, answer := range map[string]http.HandlerFunc{
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+thief, http.StatusTemporaryRedirect)
		},
		"redirects with GET": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://"+thief, http.StatusFound) },
		"never answers":      func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() },
		"never ends": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token": "x", "id_token": "`)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
					return
				}
			}
		},
		"gigantic": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token": "x", "id_token": "`+strings.Repeat("x", 2<<20)+`"}`)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "canary")
		},
		"server error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "canary", http.StatusInternalServerError) },
		"no tokens":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
	} {
		t.Run(name, func(t *testing.T) {
			p, g, _, _ := startLogin(t)
			g.handler.features.auth.Tokens.Timeout = time.Second
			alice := newPerson(t, g)
			back := alice.comeBack("/")
			p.set(func() { p.answers = answer })
			got := alice.open(back)
			want(t, "status", got.StatusCode, http.StatusServiceUnavailable)
			want(t, "canary", strings.Contains(got.Text, "canary"), false)
			want(t, "a session is set", strings.Contains(cookiesOf(alice), ".s0="), false)
		})
	}
	select {
	case got := <-stolen:
		t.Errorf("a redirect was followed, with %q", got)
	default:
	}
}

// A browser that keeps a copy of its log-in cannot use the code again either.
func TestACodeIsNotReplayed(t *testing.T) {
	_, g, _, _ := startLogin(t)
	alice := newPerson(t, g)
	back := alice.comeBack("/")
	copied := cookiesOf(alice)
	want(t, "first", alice.open(back).StatusCode, http.StatusFound)
	response := newPerson(t, g).stops().open(back, "Cookie", copied)
	want(t, "second", response.StatusCode, http.StatusForbidden)
	for _, cookie := range response.Cookies {
		want(t, "what is set is removed: "+cookie.Name, cookie.MaxAge < 0, true)
	}
}

func TestTheCallbackOfAnotherProviderOrForm(t *testing.T) {
	p := newProvider(t)
	p.document = map[string]any{"authorization_response_iss_parameter_supported": true}
	backend, requests := recording(t)
	g := startTable(t, Options{}, compile(t, p.route(), p.secrets(), backend))
	for name, test := range map[string]struct {
		change func(url.Values)
		code   int
		asked  int // how often the provider is asked for tokens
	}{
		"good":             {func(url.Values) {}, http.StatusFound, 1},
		"another issuer":   {func(q url.Values) { q.Set("iss", "https://evil.test") }, http.StatusBadRequest, 0},
		"no issuer":        {func(q url.Values) { q.Del("iss") }, http.StatusBadRequest, 0},
		"an error":         {func(q url.Values) { q.Del("code"); q.Set("error", "<script>") }, http.StatusForbidden, 0},
		"error and code":   {func(q url.Values) { q.Set("error", "x") }, http.StatusForbidden, 0},
		"no code":          {func(q url.Values) { q.Del("code") }, http.StatusBadRequest, 0},
		"an empty code":    {func(q url.Values) { q.Set("code", "") }, http.StatusBadRequest, 0},
		"two codes":        {func(q url.Values) { q.Add("code", "x") }, http.StatusBadRequest, 0},
		"two states":       {func(q url.Values) { q.Add("state", q.Get("state")) }, http.StatusBadRequest, 0},
		"no state":         {func(q url.Values) { q.Del("state") }, http.StatusBadRequest, 0},
		"an empty state":   {func(q url.Values) { q.Set("state", "") }, http.StatusBadRequest, 0},
		"a short state":    {func(q url.Values) { q.Set("state", q.Get("state")[:1]) }, http.StatusBadRequest, 0},
		"a changed state":  {func(q url.Values) { q.Set("state", q.Get("state")[:26]+"!") }, http.StatusBadRequest, 0},
		"another slot":     {func(q url.Values) { q.Set("state", "!"+q.Get("state")[1:]) }, http.StatusBadRequest, 0},
		"a code of nobody": {func(q url.Values) { q.Set("code", "x") }, http.StatusForbidden, 1},
	} {
		t.Run(name, func(t *testing.T) {
			alice := newPerson(t, g)
			address, err := url.Parse(alice.comeBack("/"))
			if err != nil {
				t.Fatal(err)
			}
			query := address.Query()
			query.Set("iss", p.URL)
			test.change(query)
			address.RawQuery = query.Encode()
			p.set(func() { p.asked = 0 })
			got := alice.open(address.String())
			want(t, "status", got.StatusCode, test.code)
			want(t, "a session is set", strings.Contains(cookiesOf(alice), ".s0="), test.code == http.StatusFound)
			want(t, "what the client sent", strings.Contains(got.Text, "script"), false)
			p.set(func() { want(t, "requests for tokens", p.asked, test.asked) })
		})
	}
	want(t, "requests that reached the backend", len(requests), 0)
}

// A path that some server may read as that of the callback is a request like all others: it needs a session. One that every server
// reads so is the callback itself, so that no backend gets a code.
func TestOtherReadingsOfTheCallbackNeedASession(t *testing.T) {
	p, g, requests, _ := startLogin(t)
	alice := newPerson(t, g)
	back, err := url.Parse(alice.comeBack("/"))
	if err != nil {
		t.Fatal(err)
	}
	login := cookiesOf(alice)
	p.set(func() { p.asked = 0 })
	for _, path := range []string{
		"//oauth2/callback", "/oauth2//callback", "/oauth2/callback/", "/oauth2/callback;x", "/OAUTH2/callback", `/oauth2\callback`,
		"/oauth2%2fcallback", "/oauth2/x/..;/callback", "/oauth2/logout/", "/oauth2/logout;x", "/oauth2/callback%00", "http://evil.test/oauth2/callback/",
	} {
		head := g.exchangeRaw("GET " + path + "?" + back.RawQuery + " HTTP/1.1\r\nHost: " + g.address + "\r\nConnection: close\r\nSec-Fetch-Site: same-origin\r\nCookie: " + login + "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 401 ") && !strings.HasPrefix(head, "HTTP/1.1 400 ") || strings.Contains(head, "Set-Cookie") {
			t.Errorf("%s: got %q", path, head)
		}
	}
	p.set(func() { want(t, "requests for tokens", p.asked, 0) })
	want(t, "status in its own spelling", alice.open(back.String()).StatusCode, http.StatusFound)
	for _, path := range []string{"/%6fauth2/callback", "/./oauth2/callback", "/x/../oauth2/callback", "/oauth2/x/%2e%2e/callback"} {
		bob := newPerson(t, g)
		back, err := url.Parse(bob.comeBack("/"))
		if err != nil {
			t.Fatal(err)
		}
		head := g.exchangeRaw("GET " + path + "?" + back.RawQuery + " HTTP/1.1\r\nHost: " + g.address + "\r\nConnection: close\r\nCookie: " + cookiesOf(bob) + "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 302 ") || !strings.Contains(head, ".s0=1.") {
			t.Errorf("%s: got %q", path, head)
		}
	}
	want(t, "requests that reached the backend", len(requests), 0)
}

// A log-in goes on while the gateway gets another table.
func TestALogInSurvivesAnotherTable(t *testing.T) {
	p, g, requests, _ := startLogin(t)
	alice := newPerson(t, g)
	back := alice.comeBack("/")
	backend, _ := recording(t)
	next := compile(t, p.route(), p.secrets("the next secret of this client", clientSecret), backend)
	g.handler.Set(Config{Table: next})
	p.set(func() { p.answers = nil })
	want(t, "status with a secret that the provider does not know yet", alice.open(back).StatusCode, http.StatusBadGateway)
	back = alice.comeBack("/")
	g.handler.Set(Config{Table: compile(t, p.route(), p.secrets(), backend)})
	want(t, "status of a log-in that was begun with another secret", alice.open(back).StatusCode, http.StatusBadRequest)
	back = alice.comeBack("/")
	g.handler.Set(Config{Table: compile(t, p.route()+"  timeouts: {request: 10s}\n", p.secrets(), backend)})
	want(t, "status", alice.open(back).StatusCode, http.StatusFound)
	want(t, "fetches of keys", p.fetches.Load(), int64(1))
	g.handler.Set(Config{Table: compile(t, toApp, nil, backend)})
	want(t, "what guards log-ins", g.handler.current.Load().bound.auth.Guard(), authserve.Guard{})
	want(t, "status without a log-in", alice.open("/").StatusCode, http.StatusOK)
	want(t, "requests that reached the first backend", len(requests), 0)
}
