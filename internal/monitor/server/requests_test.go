package server

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/web/failure"
	"github.com/slipway-dev/slipway/internal/web/guard"
	"github.com/slipway-dev/slipway/internal/web/signin"
)

type fixedRules struct {
	rules  []api.Rule
	alarms []Alarm
}

func (f *fixedRules) Rules(context.Context) ([]api.Rule, error) { return f.rules, nil }
func (f *fixedRules) Alarms(context.Context) ([]Alarm, error)   { return f.alarms, nil }

func TestRequestsThatAreRefused(t *testing.T) {
	m := newMonitor(t, nil)
	for name, tc := range map[string]struct {
		user, path string
		change     func(*http.Request)
		code       int
	}{
		"with a token":                                      {"user", "whoami", nil, 200},
		"without a token":                                   {"", "whoami", nil, 401},
		"with a token of nobody":                            {"nobody", "whoami", nil, 401},
		"with a token that is none":                         {"user\x00", "whoami", nil, 401},
		"with a token that is too long":                     {"user" + strings.Repeat("x", signin.MaxToken), "whoami", nil, 401},
		"with a password":                                   {"", "whoami", func(r *http.Request) { r.SetBasicAuth("user", "user") }, 401},
		"with two tokens":                                   {"user", "whoami", func(r *http.Request) { r.Header.Add("Authorization", "Bearer user2") }, 401},
		"without a token, of an endpoint that is not there": {"", "nothing", nil, 404},
		"of an endpoint that is not there":                  {"user", "nothing", nil, 404},
		"with a name that leads here":                       {"user", "whoami", func(r *http.Request) { r.Host = "evil.example.com" }, 421},
		"with no name":                                      {"user", "whoami", func(r *http.Request) { r.Host = "" }, 421},
		"with the name of the monitor":                      {"user", "whoami", func(r *http.Request) { r.Host = "Monitor.Example.com.:443" }, 200},
		"with an address":                                   {"user", "whoami", func(r *http.Request) { r.Host = "[::1]:8080" }, 200},
		"that writes":                                       {"user", "whoami", func(r *http.Request) { r.Method = http.MethodPost }, 405},
		"that asks whether it may":                          {"user", "whoami", func(r *http.Request) { r.Method = http.MethodOptions }, 405},
		"with a body":                                       {"user", "whoami", func(r *http.Request) { r.ContentLength = 5 }, 413},
		"with a body of unknown length":                     {"user", "whoami", func(r *http.Request) { r.ContentLength = -1 }, 413},
		"as another user":                                   {"user", "whoami", func(r *http.Request) { r.Header.Set("Impersonate-User", "admin") }, 400},
		"as another user, as by the API server":             {"user", "whoami", func(r *http.Request) { r.Header.Set("X-Remote-User", "admin") }, 400},
		"of another site": {"user", "whoami", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "cors")
		}, 403},
		"that is too long":                        {"user", "changes?actor=" + strings.Repeat("x", guard.MaxURI), nil, 413},
		"with a parameter that is too long":       {"user", "changes?actor=" + strings.Repeat("x", maxParam+1), nil, 400},
		"with an unknown parameter":               {"user", "changes?namespaces=x", nil, 400},
		"with a parameter twice":                  {"user", "changes?namespace=x&namespace=y", nil, 400},
		"with a namespace that is none":           {"user", "changes?namespace=../x", nil, 400},
		"with a kind that is none":                {"user", "changes?kind=*.*", nil, 400},
		"with a wrong time":                       {"user", "changes?since=yesterday", nil, 400},
		"with a time to come":                     {"user", "changes?since=-1h", nil, 400},
		"with a limit that is too high":           {"user", "changes?limit=501", nil, 400},
		"with a cursor that was not given":        {"user", "changes?cursor=2026-11-25.0.1", nil, 400},
		"with a type that does not exist":         {"user", "changes?type=Gone", nil, 400},
		"with a path that is none":                {"user", "changes?path=spec", nil, 400},
		"with a wrong flag":                       {"user", "changes?fields=yes", nil, 400},
		"with a character that cannot be printed": {"user", "changes?name=%00", nil, 400},
		"with bytes that are no text":             {"user", "changes?name=%ff", nil, 400},
		"for the definition of a path":            {"user", "definitions?name=../x", nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			var changes []func(*http.Request)
			if tc.change != nil {
				changes = append(changes, tc.change)
			}
			w := m.ask(tc.user, api.Prefix+tc.path, changes...)
			if w.Code != tc.code {
				t.Errorf("%d, want %d: %s", w.Code, tc.code, w.Body)
			}
			if tc.code >= 400 {
				reported := failure.Failure{}
				if err := json.Unmarshal(w.Body.Bytes(), &reported); err != nil || reported.Code != tc.code || reported.Message == "" {
					t.Errorf("the failure is %s", w.Body)
				}
			}
			for header, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Content-Security-Policy": guard.Policy,
				"Access-Control-Allow-Origin": "", "Content-Type": "application/json",
			} {
				if got := w.Header().Get(header); got != want {
					t.Errorf("%s is %q, want %q", header, got, want)
				}
			}
		})
	}
}

func TestProbesNeedNoTokenAndSayNothingElse(t *testing.T) {
	ready := errDown
	m := newMonitor(t, func(o *Options) { o.Ready = func() error { return ready } })
	anyHost := func(r *http.Request) { r.Host = "10.1.2.3:8080" }
	if w := m.ask("", "/healthz", anyHost); w.Code != 200 || w.Body.String() != "ok\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := m.ask("", "/readyz", anyHost); w.Code != 503 || strings.Contains(w.Body.String(), "connection") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	ready = nil
	if w := m.ask("", "/readyz", anyHost); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestTokensAreAskedForOnceAMinute(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	m := newMonitor(t, func(o *Options) { o.Clock = clock })
	ask := func(user string, code, reviews int) {
		t.Helper()
		before, _ := m.cluster.counts()
		w := m.ask(user, api.Prefix+"whoami")
		after, _ := m.cluster.counts()
		if w.Code != code || after-before != reviews {
			t.Errorf("%s: %d after %d reviews, want %d after %d", user, w.Code, after-before, code, reviews)
		}
	}
	ask("user", 200, 2) // for the monitor's audience, and for the API server's
	ask("user", 200, 0)
	m.cluster.refused["user"] = true
	clock.Step(59 * time.Second)
	ask("user", 200, 0)
	clock.Step(2 * time.Second)
	ask("user", 401, 2)
	ask("user", 401, 0)
	m.cluster.refused["user"] = false
	clock.Step(signin.RefusedFor + time.Second)
	ask("user", 200, 2)
	m.cluster.down = errDown
	ask("user2", 503, 1)
	if body := m.ask("user2", api.Prefix+"whoami").Body.String(); strings.Contains(body, "user2") {
		t.Errorf("an error quotes the token: %s", body)
	}
}

func TestTokensForTheMonitorAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		audience string
		own      bool
		code     int
	}{
		"for the monitor":    {api.Audience, false, 200},
		"for the API server": {"", false, 200},
		"for another":        {"vault", false, 401},
		"for the monitor, where no others are taken":       {api.Audience, true, 200},
		"for the API server, where only its own are taken": {"", true, 401},
	} {
		m := newMonitor(t, func(o *Options) { o.OwnAudienceOnly = tc.own })
		m.cluster.audiences["user"] = tc.audience
		if w := m.ask("user", api.Prefix+"whoami"); w.Code != tc.code {
			t.Errorf("%s: %d, want %d", name, w.Code, tc.code)
		}
	}
}

func TestAUserSendsOnlySoMuch(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	m := newMonitor(t, func(o *Options) { o.Clock, o.Rate, o.Burst = clock, 1, 3 })
	for i, want := range []int{200, 200, 200, 429} {
		if w := m.ask("user", api.Prefix+"whoami"); w.Code != want {
			t.Errorf("request %d: %d", i, w.Code)
		}
	}
	if w := m.ask("user2", api.Prefix+"whoami"); w.Code != 200 {
		t.Errorf("another user: %d", w.Code)
	}
	clock.Step(time.Second)
	if w := m.ask("user", api.Prefix+"whoami"); w.Code != 200 {
		t.Errorf("a second later: %d", w.Code)
	}
}

func login(token string, change ...func(*http.Request)) *http.Request {
	raw, _ := json.Marshal(map[string]string{"token": token})
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(string(raw)))
	r.Host = "monitor.example.com"
	r.Header.Set("Origin", "https://monitor.example.com")
	r.Header.Set("Content-Type", "application/json")
	for _, c := range change {
		c(r)
	}
	return r
}

func TestALogInIsACookieThatOnlyThisSiteSends(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	m := newMonitor(t, func(o *Options) { o.BehindTLS, o.Clock, o.SessionLife = true, clock, time.Hour })
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, login("user"))
	cookies := w.Result().Cookies()
	if w.Code != 200 || len(cookies) != 1 {
		t.Fatalf("%d %v %s", w.Code, cookies, w.Body)
	}
	cookie := cookies[0]
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Name != "__Host-slipway-monitor" || cookie.MaxAge != 3600 {
		t.Errorf("the cookie is %s", cookie)
	}
	if strings.Contains(cookie.Value, "user") {
		t.Error("the cookie holds the token")
	}
	with := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie.Name, Value: value}) }
	}
	if w := m.ask("", api.Prefix+"whoami", with(cookie.Value)); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	changed := []byte(cookie.Value)
	changed[len(changed)/2] ^= 1
	if w := m.ask("", api.Prefix+"whoami", with(string(changed))); w.Code != 401 {
		t.Errorf("a changed cookie: %d", w.Code)
	}
	clock.Step(2 * time.Hour)
	if w := m.ask("", api.Prefix+"whoami", with(cookie.Value)); w.Code != 401 {
		t.Errorf("an old cookie: %d", w.Code)
	}
	for name, change := range map[string]func(*http.Request){
		"another site":         func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.com") },
		"no origin":            func(r *http.Request) { r.Header.Del("Origin") },
		"without encryption":   func(r *http.Request) { r.Header.Set("Origin", "http://monitor.example.com") },
		"a sibling site":       func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"a form":               func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		"reading":              func(r *http.Request) { r.Method = http.MethodGet },
		"another name":         func(r *http.Request) { r.Host = "evil.example.com"; r.Header.Set("Origin", "https://evil.example.com") },
		"a token of nobody":    func(r *http.Request) { *r = *login("nobody") },
		"a token that is long": func(r *http.Request) { *r = *login("user" + strings.Repeat("x", 5000)) },
	} {
		w := httptest.NewRecorder()
		m.handler.ServeHTTP(w, login("user", change))
		if w.Code < 400 || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	w = httptest.NewRecorder()
	m.handler.ServeHTTP(w, login("", func(r *http.Request) { r.URL.Path = "/logout" }))
	if cookies := w.Result().Cookies(); w.Code != 204 || len(cookies) != 1 || cookies[0].MaxAge >= 0 {
		t.Errorf("%d %v", w.Code, cookies)
	}
}

func TestThePageIsServedWithoutATokenAndNothingBesideIt(t *testing.T) {
	files := fstest.MapFS{
		"index.html": {Data: []byte("<!doctype html>")}, "assets/app.js": {Data: []byte("long")}, "secret.txt": {Data: []byte("secret")},
	}
	m := newMonitor(t, func(o *Options) { o.Page = files })
	for path, want := range map[string]string{
		"/": "200 text/html; charset=utf-8", "/assets/app.js": "200 text/javascript; charset=utf-8", "/secret.txt": "404 application/json",
		"/assets/": "404 application/json", "/assets/../secret.txt": "307 ", "/assets/%2e%2e/secret.txt": "404 application/json",
	} {
		w := m.ask("", path)
		if got := fmt.Sprintf("%d %s", w.Code, w.Header().Get("Content-Type")); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		if w.Header().Get("Content-Security-Policy") != guard.Policy {
			t.Errorf("%s has no policy", path)
		}
	}
	w := m.ask("", "/assets/app.js", func(r *http.Request) { r.Header.Set("Accept-Encoding", "br, gzip") })
	reader, err := gzip.NewReader(w.Body)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v %v", err, w.Header())
	}
	if content, err := io.ReadAll(reader); err != nil || string(content) != "long" {
		t.Errorf("%q %v", content, err)
	}
	again := m.ask("", "/assets/app.js", func(r *http.Request) {
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("If-None-Match", w.Header().Get("ETag"))
	})
	if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("Content-Security-Policy") != guard.Policy {
		t.Errorf("what the browser has already: %d %s", again.Code, again.Body)
	}
	if plain := m.ask("", "/assets/app.js", func(r *http.Request) { r.Header.Set("If-None-Match", w.Header().Get("ETag")) }); plain.Body.String() != "long" {
		t.Errorf("without compression: %d %s", plain.Code, plain.Body)
	}
}
