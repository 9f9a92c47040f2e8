package proxy

import (
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// asking is a gateway with a route that asks a Service.
type asking struct {
	*gateway

	asked, passed chan seen
}

// startAsking starts one. answer is what the Service does.
func startAsking(t *testing.T, external string, answer http.HandlerFunc) *asking {
	t.Helper()
	a := &asking{asked: make(chan seen, 100)}
	service := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.asked <- seen{r, string(body)}
		answer(w, r)
	})
	var backend string
	backend, a.passed = recording(t)
	a.gateway = startTable(t, Options{}, compileAsking(t, external, backend, service))
	return a
}

func compileAsking(t *testing.T, external, backend string, service ...string) *table.Table {
	t.Helper()
	var spec []slipwayv1alpha1.Route
	text := `[{backendService: {name: app, port: 80}, auth: {external: {backendService: {name: auth, port: 80}` + external + `}}}]`
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	compiled, problems := apiroutes.Compile(apiroutes.Input{Routes: spec, Services: map[string]model.Service{
		"app":  {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{backend}}}},
		"auth": {Ports: map[int32]model.ServicePort{80: {Endpoints: service}}},
	}})
	if len(problems) > 0 && len(service) > 0 {
		t.Fatal(problems)
	}
	return compiled
}

// none tells that no request has come.
func none(t *testing.T, what string, requests chan seen) {
	t.Helper()
	select {
	case r := <-requests:
		t.Errorf("%s got %s %s", what, r.Method, r.RequestURI)
	default:
	}
}

func TestAServiceDecidesWhoComesIn(t *testing.T) {
	a := startAsking(t, `, path: /check, backendHeaders: [X-User, X-Groups]`, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			w.Header().Set("Location", "https://login.example.com/")
			w.Header().Set("X-Internal", "secret")
			w.Header().Add("Set-Cookie", "a=1")
			w.Header().Add("Set-Cookie", "b=2")
			w.WriteHeader(http.StatusFound)
			_, _ = io.WriteString(w, "log in")
			return
		}
		w.Header().Set("X-User", "alice")
		w.Header().Add("X-Groups", "a")
		w.Header().Add("X-Groups", "b")
		w.Header().Set("X-Else", "no")
	})
	response, body := a.send(a.request("POST", "/buy?x=1&y=%20"))
	want(t, "refused", status(response)+body, "302log in")
	want(t, "location", response.Header.Get("Location"), "https://login.example.com/")
	want(t, "cookies", join(response.Header["Set-Cookie"]), "a=1 | b=2")
	want(t, "what is internal", response.Header.Get("X-Internal"), "")
	<-a.asked
	none(t, "the backend", a.passed)

	request := a.request("POST", "/buy/a%20b?x=1&y=%20", "Authorization", "Bearer good", "X-User", "root", "X_user", "root", "x-groups", "admin", "X-Other", "o", "X-Forwarded-Uri", "/open", "X-Forwarded-Method", "GET")
	request.Body, request.ContentLength = io.NopCloser(strings.NewReader("body")), 4
	response, _ = a.send(request)
	want(t, "let in", response.StatusCode, 200)
	asked := <-a.asked
	want(t, "question", asked.Method+" "+asked.RequestURI+" "+asked.body, "GET /check ")
	told := http.Header{
		"Authorization": {"Bearer good"}, "X-Forwarded-Method": {"POST"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {request.Host},
		"X-Forwarded-Uri": {"/buy/a%20b?x=1&y=%20"}, "X-Forwarded-For": {"127.0.0.1"},
	}
	if diff := cmp.Diff(told, asked.Header); diff != "" {
		t.Errorf("the Service is told: -want +got:\n%s", diff)
	}
	passed := <-a.passed
	want(t, "body", passed.body, "body")
	want(t, "user", join(passed.Header["X-User"]), "alice")
	want(t, "groups", join(passed.Header["X-Groups"]), "a | b")
	want(t, "another spelling", join(passed.Header["X_user"]), "")
	want(t, "what is not asked for", join(passed.Header["X-Else"]), "")
	want(t, "what the client sends besides", join(passed.Header["X-Other"]), "o")
}

// A field that Connection names does not reach the backend, so the Service must not decide by it either.
func TestAServiceIsToldNothingThatTheBackendDoesNotGet(t *testing.T) {
	a := startAsking(t, "", func(http.ResponseWriter, *http.Request) {})
	a.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close, Cookie\r\nCookie: admin=1\r\nAuthorization: x\r\n\r\n")
	asked, passed := <-a.asked, <-a.passed
	want(t, "the Service", join(asked.Header["Cookie"])+join(asked.Header["Authorization"]), "x")
	want(t, "the backend", join(passed.Header["Cookie"])+join(passed.Header["Authorization"]), "x")
}

// The Service and the backend could read such a path differently, and the Service would decide about another one.
func TestAServiceIsNotAskedAboutAPathThatCanBeReadInTwoWays(t *testing.T) {
	a := startAsking(t, "", func(http.ResponseWriter, *http.Request) {})
	for _, path := range []string{"/open/..;/admin", "/open%2F..%2Fadmin", "/open//admin", `/open\admin`, "/open%5c..%5cadmin", "/open%3F/admin", "/open%252fadmin", "/%2561dmin"} {
		want(t, path, a.raw2(path), 400)
	}
	none(t, "the Service", a.asked)
	none(t, "the backend", a.passed)
	for path, sent := range map[string]string{"/open/../admin": "/admin", "/open/./x": "/open/x", "/open;/../admin": "/admin", "/a%20b": "/a%20b"} {
		want(t, path, a.raw2(path), 200)
		want(t, path+", the Service", (<-a.asked).Header.Get("X-Forwarded-Uri"), sent)
		want(t, path+", the backend", (<-a.passed).RequestURI, sent)
	}
}

// raw2 asks for a path as it is written, and returns the status.
func (a *asking) raw2(path string) int {
	response, _ := a.raw("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	return response.StatusCode
}

func TestWithoutAnAnswerNobodyComesInUnlessTheRouteSaysSo(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"an error":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"it is too busy":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"no answer":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"it takes too long": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"no HTTP": func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_, _ = c.Write([]byte("hello\r\n"))
			_ = c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAsking(t, ", timeout: 200ms", answer)
			response, _ := a.get("/")
			want(t, "status", response.StatusCode, 503)
			none(t, "the backend", a.passed)
			a = startAsking(t, ", timeout: 200ms, onFailure: LetIn", answer)
			response, _ = a.get("/")
			want(t, "status where all are let in", response.StatusCode, 200)
			<-a.passed
		})
	}
	t.Run("nobody to ask", func(t *testing.T) {
		backend, passed := recording(t)
		g := startTable(t, Options{}, compileAsking(t, "", backend))
		response, _ := g.get("/")
		want(t, "status", response.StatusCode, 503)
		none(t, "the backend", passed)
	})
}

// What the Service answers may depend on the client. So an answer that cannot be understood lets nobody in.
func TestAnAnswerThatIsNeitherYesNorNoLetsNobodyIn(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a head that is too large": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", strings.Repeat("a", 70<<10))
			w.WriteHeader(http.StatusFound)
		},
		"another protocol": func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_, _ = c.Write([]byte("HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"))
			_ = c.Close()
		},
		"two lengths of it": func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n"))
			_ = c.Close()
		},
	} {
		a := startAsking(t, ", timeout: 10s, onFailure: LetIn", answer)
		response, _ := a.get("/")
		want(t, name, response.StatusCode, 503)
		none(t, "the backend", a.passed)
	}
}

func TestALargeRefusalKeepsItsStatusAlone(t *testing.T) {
	a := startAsking(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, strings.Repeat("x", 64<<10+1))
	})
	response, body := a.get("/")
	want(t, "answer", status(response)+body, "403Forbidden\n")
}

func TestAServiceSaysWhoIsCounted(t *testing.T) {
	a := startAsking(t, `, identityHeader: X-User, requestHeaders: [X-Key]`, func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("X-Key"); key != "" {
			w.Header().Set("X-User", key)
		}
	})
	compiled := a.handler.current.Load().Table
	compiled.Routes[0].RateLimit = &ratelimit.Limit{Requests: 1, Period: time.Hour, Burst: 1, Per: ratelimit.PerKey}
	a.handler.Set(Config{Table: compiled})
	for _, step := range []struct {
		key    string
		status int
	}{{"alice", 200}, {"bob", 200}, {"alice", 429}, {"", 403}} {
		response, _ := a.get("/", "X-Key", step.key, "X-User", "carol")
		want(t, step.key, response.StatusCode, step.status)
	}
	want(t, "who the backend hears of", join((<-a.passed).Header["X-User"]), "")
}

func TestAHeldUpServiceDoesNotHoldUpLongerThanTheRoute(t *testing.T) {
	a := startAsking(t, ", timeout: 30s, onFailure: LetIn", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	compiled := a.handler.current.Load().Table
	compiled.Routes[0].Timeouts.Request = 300 * time.Millisecond
	start := time.Now()
	response, _ := a.get("/")
	if took := time.Since(start); response.StatusCode != http.StatusGatewayTimeout || took > 10*time.Second {
		t.Errorf("%d after %v", response.StatusCode, took)
	}
	none(t, "the backend, although the Service had less than its time", a.passed)
}

// A client that asks more at a time than the gateway asks the Service must not let itself in.
func TestAClientCannotKeepTheServiceFromBeingAsked(t *testing.T) {
	hold := make(chan struct{})
	a := startAsking(t, ", onFailure: LetIn, timeout: 10s", func(w http.ResponseWriter, _ *http.Request) {
		<-hold
		w.WriteHeader(http.StatusForbidden)
	})
	current := a.handler.current.Load()
	for i, backend := range current.Table.Backends {
		if backend.Service == "auth" {
			current.services[i].SetLimits(model.Limits{Connections: 1, Pending: 0, Requests: 1})
		}
	}
	codes := make(chan int, 5)
	for range cap(codes) {
		go func() {
			response, _ := a.get("/")
			codes <- response.StatusCode
		}()
	}
	for range cap(codes) - 1 {
		want(t, "a request that was not asked about", <-codes, 503)
	}
	close(hold)
	want(t, "the one that was", <-codes, 403)
	none(t, "the backend", a.passed)
}

// A question that waits for others has less time for its answer. That must not let its client in.
func TestAClientCannotTakeTheTimeOfTheService(t *testing.T) {
	a := startAsking(t, ", onFailure: LetIn, timeout: 300ms", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	current := a.handler.current.Load()
	for i, backend := range current.Table.Backends {
		if backend.Service == "auth" {
			current.services[i].SetLimits(model.Limits{Connections: 1, Pending: 5, Requests: 6})
		}
	}
	first := make(chan int)
	go func() {
		response, _ := a.get("/first")
		first <- response.StatusCode
	}()
	<-a.asked
	response, _ := a.get("/second")
	want(t, "one that has waited", response.StatusCode, 503)
	want(t, "one whose Service had its time", <-first, 200)
}

// The backend must not read a header that the Service was not shown.
func TestABackendGetsWhatTheServiceWasShown(t *testing.T) {
	a := startAsking(t, ", requestHeaders: [X-Tenant]", func(http.ResponseWriter, *http.Request) {})
	a.raw("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Tenant: mine\r\nX_Tenant: victim\r\nTrailer: X-Tenant\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Tenant: victim\r\n\r\n")
	asked, passed := <-a.asked, <-a.passed
	want(t, "the Service", join(asked.Header["X-Tenant"]), "mine")
	want(t, "the backend", join(passed.Header["X-Tenant"])+join(passed.Header["X_tenant"])+join(passed.Trailer["X-Tenant"]), "mine")
}

// Both are told the same host, be it what a trusted proxy says.
func TestTheServiceAndTheBackendAreToldTheSameHost(t *testing.T) {
	a := startAsking(t, "", func(http.ResponseWriter, *http.Request) {})
	for _, trusted := range []bool{false, true} {
		config := a.handler.current.Load().Config
		if config.TrustedProxies = nil; trusted {
			config.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}
		a.handler.Set(config)
		a.get("/", "X-Forwarded-Host", "shop.example.com")
		asked, passed := <-a.asked, <-a.passed
		want(t, "the host", asked.Header.Get("X-Forwarded-Host"), passed.Header.Get("X-Forwarded-Host"))
		want(t, "it is what the proxy says", asked.Header.Get("X-Forwarded-Host") == "shop.example.com", trusted)
	}
}
