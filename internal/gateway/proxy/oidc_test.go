package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

const loginRoute = `
- name: shop
  backendService: {name: app, port: 80}
  auth:
    oidc:
      issuer: ISSUER
      clientID: shop
      clientSecretRef: {name: login, key: secret}
      logoutPath: /oauth2/logout
      forwardToken: AccessToken
      claimsToHeaders: [{claim: email, header: X-Email}]
`

func (p *provider) route() string { return strings.Replace(loginRoute, "ISSUER", p.URL, 1) }

func startLogin(t *testing.T) (*provider, *gateway, chan seen, *testingclock.FakeClock) {
	p := newProvider(t)
	backend, requests := recording(t)
	clock := testingclock.NewFakeClock(time.Now())
	return p, startTable(t, Options{Clock: clock, Identity: "APIGateway a/b"}, compile(t, p.route(), p.secrets(), backend)), requests, clock
}

// startForwarding logs alice in at a gateway that sends a token to its backend.
func startForwarding(t *testing.T, p *provider, forward string) (*testingclock.FakeClock, *person) {
	t.Helper()
	backend, _ := recording(t)
	clock := testingclock.NewFakeClock(time.Now())
	route := strings.Replace(p.route(), "forwardToken: AccessToken", "forwardToken: "+forward, 1)
	alice := newPerson(t, startTable(t, Options{Clock: clock}, compile(t, route, p.secrets(), backend)))
	want(t, "status of the log-in", alice.open("/").StatusCode, http.StatusOK)
	return clock, alice
}

func TestABrowserLogsInAndComesBackToItsPage(t *testing.T) {
	_, g, requests, _ := startLogin(t)
	alice := newPerson(t, g)
	page := alice.open("/orders?page=2", "X-Email", "mallory@evil.test", "Authorization", "Bearer forged")
	want(t, "status", page.StatusCode, http.StatusOK)
	want(t, "page", page.Request.URL.RequestURI(), "/orders?page=2")
	got := received(t, requests)
	want(t, "email", strings.Join(got.Header["X-Email"], "|"), "alice@shop.test")
	want(t, "cookies for the backend", got.Header.Get("Cookie"), "")
	if token := got.Header["Authorization"]; len(token) != 1 || !strings.HasPrefix(token[0], "Bearer access-") {
		t.Errorf("token: %q", token)
	}
	want(t, "status of a script with the session", alice.open("/api", "Accept", "*/*", "Cookie", "theme=dark").StatusCode, http.StatusOK)
	want(t, "cookies for the backend", received(t, requests).Header.Get("Cookie"), "theme=dark")
}

func TestOnlyPagesBeginALogIn(t *testing.T) {
	_, g, _, _ := startLogin(t)
	for name, send := range map[string]func(*person) opened{
		"a script": func(p *person) opened { return p.open("/", "Sec-Fetch-Mode", "cors") },
		"an image": func(p *person) opened { return p.open("/", "Accept", "image/*") },
		"a form":   func(p *person) opened { return p.do(http.MethodPost, "/") },
	} {
		t.Run(name, func(t *testing.T) {
			response := send(newPerson(t, g).stops())
			want(t, "status", response.StatusCode, http.StatusUnauthorized)
			want(t, "cookies", len(response.Cookies), 0)
		})
	}
}

func TestTheAnswerOfAProviderBelongsToTheBrowserThatBegan(t *testing.T) {
	p, g, _, _ := startLogin(t)
	mallory := newPerson(t, g)
	back := mallory.comeBack("/")
	alice := newPerson(t, g).stops()
	response := alice.open(back)
	want(t, "status with the state of another browser", response.StatusCode, http.StatusBadRequest)
	want(t, "cookies", len(response.Cookies), 0)
	for name, change := range map[string]func(url.Values){
		"no state":        func(v url.Values) { v.Del("state") },
		"two states":      func(v url.Values) { v.Add("state", v.Get("state")) },
		"another state":   func(v url.Values) { v.Set("state", "x") },
		"another issuer":  func(v url.Values) { v.Set("iss", "https://evil.test") },
		"two issuers":     func(v url.Values) { v["iss"] = []string{p.URL, p.URL} },
		"no code":         func(v url.Values) { v.Del("code") },
		"two codes":       func(v url.Values) { v.Add("code", "x") },
		"a broken escape": nil,
	} {
		t.Run(name, func(t *testing.T) {
			browser := newPerson(t, g)
			address, _ := url.Parse(browser.comeBack("/"))
			query := address.Query()
			if change != nil {
				change(query)
			}
			address.RawQuery = query.Encode()
			if change == nil {
				address.RawQuery += "&x=%zz"
			}
			want(t, "status", browser.open(address.String()).StatusCode, http.StatusBadRequest)
		})
	}
}

func TestACodeIsUsedOnce(t *testing.T) {
	_, g, _, _ := startLogin(t)
	alice := newPerson(t, g)
	back := alice.comeBack("/")
	want(t, "first", alice.open(back).StatusCode, http.StatusFound)
	want(t, "second", alice.open(back).StatusCode, http.StatusBadRequest)
}

func TestALogInEndsAfterTenMinutes(t *testing.T) {
	_, g, _, clock := startLogin(t)
	alice := newPerson(t, g)
	back := alice.comeBack("/")
	clock.Step(10 * time.Minute)
	late := alice.open(back)
	want(t, "status", late.StatusCode, http.StatusBadRequest)
	want(t, "text", late.Text, "This log-in was begun too long ago, or in another browser. Open the page again to start over.\n")
}

func TestABrowserIsNotSentElsewhere(t *testing.T) {
	_, g, _, _ := startLogin(t)
	for _, path := range []string{"//evil.test/", "///evil.test/", "/%5cevil.test", "/x//evil.test"} {
		alice := newPerson(t, g)
		target := alice.open(alice.comeBack(path)).Header.Get("Location")
		if parsed, err := url.Parse(target); err != nil || parsed.Host != "" || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") {
			t.Errorf("%s leads to %q", path, target)
		}
	}
}

func TestOnlyAValidIDTokenLogsIn(t *testing.T) {
	for name, test := range map[string]struct {
		claims map[string]any
		code   int
	}{
		"valid":                        {nil, http.StatusFound},
		"for several, and us by azp":   {map[string]any{"aud": []string{"shop", "other"}, "azp": "shop"}, http.StatusFound},
		"for another client":           {map[string]any{"aud": "other"}, http.StatusForbidden},
		"for several, without azp":     {map[string]any{"aud": []string{"shop", "other"}}, http.StatusForbidden},
		"given out to another client":  {map[string]any{"azp": "other"}, http.StatusForbidden},
		"of another issuer":            {map[string]any{"iss": "https://evil.test"}, http.StatusForbidden},
		"expired":                      {map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, http.StatusForbidden},
		"without end":                  {map[string]any{"exp": nil}, http.StatusForbidden},
		"with the nonce of another":    {map[string]any{"nonce": "other"}, http.StatusForbidden},
		"without nonce":                {map[string]any{"nonce": nil}, http.StatusForbidden},
		"of nobody":                    {map[string]any{"sub": ""}, http.StatusForbidden},
		"with more than cookies carry": {map[string]any{"groups": strings.Repeat("x", 11000)}, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			p, g, _, _ := startLogin(t)
			p.set(func() { p.claims = test.claims })
			alice := newPerson(t, g)
			response := alice.open(alice.comeBack("/"))
			want(t, "status", response.StatusCode, test.code)
			if test.code != http.StatusFound {
				want(t, "status of the next request", alice.open("/", "Accept", "*/*").StatusCode, http.StatusUnauthorized)
			}
		})
	}
}

func TestASessionIsRenewedOnceAtATime(t *testing.T) {
	p, g, requests, clock := startLogin(t)
	alice := newPerson(t, g)
	alice.open("/")
	received(t, requests)
	clock.Step(601 * time.Second)
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			response := alice.open("/", "Accept", "*/*")
			want(t, "status", response.StatusCode, http.StatusOK)
			if cache := response.Header.Get("Cache-Control"); len(response.Cookies) > 0 && cache != "no-store" {
				t.Errorf("a cache may keep the new session: %q", cache)
			}
		})
	}
	wait.Wait()
	p.set(func() { want(t, "refreshes", p.refreshes, 1) })
	clock.Step(601 * time.Second)
	want(t, "status later", alice.open("/", "Accept", "*/*").StatusCode, http.StatusOK)
	p.set(func() { want(t, "refreshes", p.refreshes, 2) })
}

func TestASessionThatCannotBeRenewedLetsNobodyIn(t *testing.T) {
	for name, test := range map[string]struct {
		change        func(*provider)
		code, recover int
	}{
		"the provider is down":               {func(p *provider) { p.down = true }, http.StatusServiceUnavailable, http.StatusOK},
		"the provider redirects":             {func(p *provider) { p.moved = true }, http.StatusServiceUnavailable, http.StatusOK},
		"the provider is confused":           {func(p *provider) { p.refusal = "invalid_request" }, http.StatusServiceUnavailable, http.StatusOK},
		"the provider has ended the session": {func(p *provider) { clear(p.refresh) }, http.StatusUnauthorized, http.StatusUnauthorized},
		"the token is of another log-in":     {func(p *provider) { p.claims = map[string]any{"nonce": "other"} }, http.StatusUnauthorized, http.StatusUnauthorized},
		"the token is of somebody else":      {func(p *provider) { p.claims = map[string]any{"sub": "bob"} }, http.StatusUnauthorized, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			p, g, requests, clock := startLogin(t)
			alice := newPerson(t, g)
			alice.open("/")
			received(t, requests)
			p.set(func() { test.change(p) })
			want(t, "status while the tokens are valid", alice.open("/", "Accept", "*/*").StatusCode, http.StatusOK)
			clock.Step(601 * time.Second)
			want(t, "status", alice.open("/", "Accept", "*/*").StatusCode, test.code)
			p.set(func() { p.down, p.moved, p.refusal, p.claims = false, false, "", nil })
			clock.Step(2 * time.Second)
			want(t, "status after that", alice.open("/", "Accept", "*/*").StatusCode, test.recover)
		})
	}
}

func TestASessionEndsForGood(t *testing.T) {
	_, g, requests, clock := startLogin(t)
	alice := newPerson(t, g)
	alice.open("/")
	received(t, requests)
	clock.Step(12 * time.Hour)
	want(t, "status", alice.open("/", "Accept", "*/*").StatusCode, http.StatusUnauthorized)
}

func TestOnlyTheSiteItselfLogsOut(t *testing.T) {
	p, g, requests, _ := startLogin(t)
	alice := newPerson(t, g)
	alice.open("/")
	received(t, requests)
	alice.stops()
	want(t, "an image of another site", alice.open("/oauth2/logout", "Sec-Fetch-Site", "cross-site").StatusCode, http.StatusForbidden)
	want(t, "a form of another site", alice.do("POST", "/oauth2/logout", "Origin", "http://evil.test").StatusCode, http.StatusForbidden)
	want(t, "a browser that does not say", alice.open("/oauth2/logout").StatusCode, http.StatusOK)
	want(t, "status meanwhile", alice.open("/", "Accept", "*/*").StatusCode, http.StatusOK)
	response := alice.open("/oauth2/logout?next=//evil.test", "Sec-Fetch-Site", "same-origin")
	want(t, "status", response.StatusCode, http.StatusSeeOther)
	to, err := url.Parse(response.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.String(), p.URL+"/logout?") || strings.Count(to.Query().Get("id_token_hint"), ".") != 2 || len(to.Query()) != 2 {
		t.Errorf("sent to %q", to)
	}
	want(t, "status after that", alice.open("/", "Accept", "*/*").StatusCode, http.StatusUnauthorized)
}

func TestASessionOfAnotherRouteLetsNobodyIn(t *testing.T) {
	p := newProvider(t)
	backend, requests := recording(t)
	other := strings.NewReplacer("name: shop", "name: office\n  path: /office", "/oauth2/", "/office/", "forwardToken: AccessToken", "redirectPath: /office/back").Replace(p.route())
	open := "\n- {name: open, path: /open, backendService: {name: app, port: 80}}\n"
	g := startTable(t, Options{}, compile(t, p.route()+other+open, p.secrets(), backend))
	alice := newPerson(t, g)
	want(t, "shop", alice.open("/").StatusCode, http.StatusOK)
	received(t, requests)
	want(t, "office", alice.open("/office", "Accept", "*/*").StatusCode, http.StatusUnauthorized)
	want(t, "office, after a log-in there", alice.open("/office").StatusCode, http.StatusOK)
	received(t, requests)
	alice.open("/open")
	want(t, "cookies for a backend without log-in", received(t, requests).Header.Get("Cookie"), "")
}

func TestOtherGatewaysReadNoSessions(t *testing.T) {
	p, g, requests, _ := startLogin(t)
	alice := newPerson(t, g)
	alice.open("/")
	received(t, requests)
	for name, test := range map[string]struct {
		identity string
		secrets  map[string]map[string][]byte
		code     int
	}{
		"another replica":               {"APIGateway a/b", p.secrets(), http.StatusOK},
		"another replica, a new secret": {"APIGateway a/b", p.secrets("the next secret of this client", clientSecret), http.StatusOK},
		"a new secret alone":            {"APIGateway a/b", p.secrets("the next secret of this client"), http.StatusUnauthorized},
		"another gateway":               {"APIGateway a/c", p.secrets(), http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			backend, _ := recording(t)
			next := startTable(t, Options{Identity: test.identity}, compile(t, p.route(), test.secrets, backend))
			response, _ := next.get("/", "Cookie", cookiesOf(alice))
			want(t, "status", response.StatusCode, test.code)
		})
	}
}

func TestCookiesFitTheConnection(t *testing.T) {
	p := newProvider(t)
	backend, _ := recording(t)
	g := startTable(t, Options{}, compile(t, p.route(), p.secrets(), backend))
	response := newPerson(t, g).stops().open("/")
	for _, cookie := range response.Cookies {
		if cookie.Secure || strings.HasPrefix(cookie.Name, "__Host-") || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" {
			t.Errorf("without TLS: %s", cookie)
		}
	}
	want(t, "cookies", len(response.Cookies), 1)
}

func TestAProviderThatCannotBeUsedLogsNobodyIn(t *testing.T) {
	for name, document := range map[string]map[string]any{
		"the document of another issuer": {"issuer": "https://evil.test"},
		"no token endpoint":              {"token_endpoint": ""},
		"a token endpoint that is none":  {"token_endpoint": "file:///etc/passwd"},
		"no public keys":                 {"jwks_uri": "/keys"},
		"a gigantic document":            {"x": strings.Repeat("x", 300<<10)},
		"no PKCE":                        {"code_challenge_methods_supported": []string{"plain"}},
		"no way to send the secret":      {"token_endpoint_auth_methods_supported": []string{"private_key_jwt"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.document = document
			g := startTable(t, Options{}, compile(t, p.route(), p.secrets()))
			want(t, "status", newPerson(t, g).stops().open("/").StatusCode, http.StatusServiceUnavailable)
			if !g.handler.MissingKeys()[p.URL+"/.well-known/openid-configuration"] {
				t.Error("nobody is told")
			}
		})
	}
}
