package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

var sessionKey = []byte("0fd5ba38-7d5c-4c7e-b9a6-6d7f5a1e2c3b")

func placeOf(service, address string) upstream.Place {
	return upstream.PlaceOf(sessionKey, service, address)
}

const (
	// pinLength is the length of a pin in a cookie.
	pinLength = 32
	// maxPins is how many of them a client is told.
	maxPins = 8
)

// pinOf returns the name of the cookie of the first route, and the pin of an endpoint of its only backend app:80. It is made here as
// other releases make it.
func (g *gateway) pinOf(endpoint string) (name, text string) {
	keyed := func(kind, of string) []byte {
		mac := hmac.New(sha256.New, sessionKey)
		_, _ = io.WriteString(mac, kind+"\x00"+of)
		return mac.Sum(nil)
	}
	route := g.handler.current.Load().Table.Routes[0]
	if name = route.Affinity.Name; name == "" {
		name = "slipway-" + hex.EncodeToString(keyed("cookie", route.Affinity.Scope)[:4])
	}
	place := placeOf("app:80", endpoint)
	return name, base64.RawURLEncoding.EncodeToString(append(keyed("backend", route.Backends[0].ID)[:9], place[:]...))
}

// named starts backends that answer with their names.
func named(t *testing.T, names ...string) map[string]string {
	t.Helper()
	addresses := map[string]string{}
	for _, name := range names {
		addresses[name] = serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	}
	return addresses
}

// sticky compiles routes to Services with these endpoints at port 80.
func sticky(t *testing.T, text string, services map[string][]string) Config {
	t.Helper()
	var spec []slipwayv1alpha1.Route
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	in := apiroutes.Input{Routes: spec, Services: map[string]model.Service{}}
	for name, endpoints := range services {
		in.Services[name] = model.Service{Ports: map[int32]model.ServicePort{80: {Endpoints: endpoints}}}
	}
	compiled, problems := apiroutes.Compile(in)
	for _, problem := range problems {
		if problem.Reason != slipwayv1alpha1.ReasonNoEndpoints {
			t.Fatalf("problem: %+v", problem)
		}
	}
	return Config{Table: compiled, SessionKey: sessionKey}
}

func startSticky(t *testing.T, config Config) *gateway {
	t.Helper()
	g := startTable(t, Options{}, nil)
	g.handler.Set(config)
	return g
}

// cookieOf returns the only cookie of a response, and its attributes.
func cookieOf(t *testing.T, response answer) (pair, attributes string) {
	t.Helper()
	set := response.Header["Set-Cookie"]
	if len(set) != 1 {
		t.Fatalf("the response sets the cookies %q, want one", set)
	}
	pair, attributes, _ = strings.Cut(set[0], "; ")
	return pair, attributes
}

func wantNoCookie(t *testing.T, response answer) {
	t.Helper()
	if set := response.Header["Set-Cookie"]; set != nil {
		t.Errorf("the response sets %q", set)
	}
}

const byCookie = `[{backendService: {name: app, port: 80}, sessionAffinity: {cookie: {}}}]`

func TestACookieKeepsTheEndpoint(t *testing.T) {
	at := named(t, "a", "b", "c")
	services := map[string][]string{"app": {at["a"], at["b"], at["c"]}}
	g, replica := startSticky(t, sticky(t, byCookie, services)), startSticky(t, sticky(t, byCookie, services))
	reached := map[string]bool{}
	for range 30 {
		response, first := g.get("/")
		reached[first] = true
		cookie, attributes := cookieOf(t, response)
		want(t, "attributes", attributes, "Path=/; HttpOnly; SameSite=Lax")
		want(t, "a shared cache", join(response.Header["Cache-Control"]), `private="Set-Cookie"`)
		for _, of := range []*gateway{g, replica} {
			for range 3 {
				response, body := of.get("/x", "Cookie", "theme=dark; "+cookie+"; a=b")
				want(t, "the endpoint", body, first)
				wantNoCookie(t, response)
				want(t, "Cache-Control", join(response.Header["Cache-Control"]), "")
			}
		}
	}
	want(t, "endpoints that new clients get", len(reached), 3)
}

func TestTheCookieIsAsTheRouteSays(t *testing.T) {
	at := named(t, "a")
	config := sticky(t, `
- {path: /own, backendService: {name: app, port: 80}, sessionAffinity: {cookie: {name: lb, lifetimeSeconds: 3600}}}
- {path: /same, backendService: {name: app, port: 80}, sessionAffinity: {cookie: {}}}
- {path: /other, backendService: {name: other, port: 80}, sessionAffinity: {cookie: {}}}
- {path: /, backends: [{name: app, port: 80}, {name: other, port: 80, weight: 0}], sessionAffinity: {cookie: {}}, responseHeaders: {remove: [Set-Cookie]}}
`, map[string][]string{"app": {at["a"]}, "other": {at["a"]}})
	config.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	g := startSticky(t, config)
	name := func(path string) string {
		response, _ := g.get(path)
		cookie, _ := cookieOf(t, response)
		name, _, _ := strings.Cut(cookie, "=")
		return name
	}
	want(t, "its own name", name("/own"), "lb")
	want(t, "one name for the same backend", name("/same"), name("/"))
	if name("/other") == name("/same") {
		t.Error("cookies for different backends replace each other")
	}
	response, _ := g.get("/own", "X-Forwarded-Proto", "https", "X-Forwarded-For", "192.0.2.1")
	_, attributes := cookieOf(t, response)
	want(t, "attributes", attributes, "Max-Age=3600; Path=/; HttpOnly; SameSite=Lax; Secure")
}

// What a client makes up leads nowhere: it gets an endpoint as one without a cookie does. It learns nothing of endpoints.
func TestAForgedCookieMeansNothing(t *testing.T) {
	at := named(t, "a", "b", "secret")
	const routes = `
- {path: /secret, backendService: {name: secret, port: 80}, sessionAffinity: {cookie: {name: lb}}}
- {backendService: {name: app, port: 80}, sessionAffinity: {cookie: {name: lb}}}
`
	config := sticky(t, routes, map[string][]string{"app": {at["a"], at["b"]}, "secret": {at["secret"], at["a"]}})
	g := startSticky(t, config)
	response, _ := g.get("/")
	valid, _ := cookieOf(t, response)
	value := strings.TrimPrefix(valid, "lb=")
	response, _ = g.get("/secret/")
	ofOther, _ := cookieOf(t, response)
	otherGateway := startSticky(t, Config{Table: config.Table, SessionKey: []byte("another key")})
	response, _ = otherGateway.get("/")
	ofOtherGateway, _ := cookieOf(t, response)
	flipped := []byte(value)
	flipped[20] ^= 1
	for name, cookie := range map[string]string{
		"empty":                         "lb=",
		"no value":                      "lb",
		"the address":                   "lb=" + at["a"],
		"the address of another":        "lb=" + at["secret"],
		"of the other Service":          ofOther,
		"of another gateway":            ofOtherGateway,
		"zeros":                         "lb=" + strings.Repeat("A", pinLength),
		"the backend with zeros":        "lb=" + value[:12] + strings.Repeat("A", 20),
		"one character is another one":  "lb=" + string(flipped),
		"one character is missing":      "lb=" + value[1:],
		"one more character":            valid + "A",
		"quoted":                        `lb="` + value + `"`,
		"another alphabet":              "lb=" + strings.Repeat("+", pinLength),
		"another name":                  "LB=" + value,
		"a space after the name":        "lb =" + value,
		"one of 30 KiB":                 "lb=" + strings.Repeat("A", 30<<10),
		"thousands":                     strings.Repeat("lb=x;", 5000),
		"the valid one after too many":  strings.Repeat("lb=x; ", maxPins) + valid,
		"the valid one with a newline?": "lb=" + value[:16] + "\t" + value[16:],
	} {
		t.Run(name, func(t *testing.T) {
			reached := map[string]bool{}
			for range 40 {
				response, body := g.get("/", "Cookie", cookie)
				want(t, "status", response.StatusCode, 200)
				fresh, _ := cookieOf(t, response)
				length := len(valid)
				if name == "of the other Service" { // its pin stays in the cookie, for its own route
					length += pinLength
				}
				if body == "secret" || len(fresh) != length {
					t.Fatalf("it gets %q and %q", body, fresh)
				}
				reached[body] = true
			}
			if name != "the backend with zeros" && len(reached) != 2 {
				t.Errorf("it gets only %v", reached)
			}
		})
	}
	for name, cookie := range map[string]string{
		"a forged one before it":   "lb=x; " + valid,
		"one of another Service":   ofOther + "; " + valid,
		"twice":                    valid + "; " + valid,
		"as the last that counts":  strings.Repeat("lb=x; ", maxPins-1) + valid,
		"without spaces":           "a=b;" + valid + ";c=d",
		"with a cookie without =":  "novalue; " + valid,
		"with one of the same end": "xlb=" + value + "; " + valid,
	} {
		t.Run("the valid one "+name, func(t *testing.T) {
			response, _ := g.get("/", "Cookie", cookie)
			wantNoCookie(t, response)
		})
	}
}

func TestAClientWhoseEndpointIsGoneGetsAnotherOne(t *testing.T) {
	at := named(t, "a", "b", "c")
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	at["gone"] = gone.Addr().String()
	for name, tc := range map[string]struct {
		retries int
		before  []string
		after   []string
		status  int
	}{
		"it was taken away":                    {2, []string{"gone", "a"}, []string{"a", "b"}, 200},
		"it cannot be reached":                 {2, []string{"gone", "a"}, []string{"gone", "a", "b"}, 200},
		"it cannot be reached, and no retries": {0, []string{"gone", "a"}, []string{"gone", "a", "b"}, 502},
	} {
		t.Run(name, func(t *testing.T) {
			routes := fmt.Sprintf(`[{backendService: {name: app, port: 80}, sessionAffinity: {cookie: {}}, retries: {attempts: %d}}]`, tc.retries)
			services := func(names []string) map[string][]string {
				var list []string
				for _, name := range names {
					list = append(list, at[name])
				}
				return map[string][]string{"app": list}
			}
			g := startSticky(t, sticky(t, routes, services(tc.before)))
			name, text := g.pinOf(at["gone"])
			cookie := name + "=" + text
			g.handler.Set(sticky(t, routes, services(tc.after)))
			response, body := g.get("/", "Cookie", cookie)
			want(t, "status", response.StatusCode, tc.status)
			fresh, attributes := cookieOf(t, response)
			if tc.status != 200 {
				want(t, "it is forgotten", fresh+"; "+attributes, name+"=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax")
				return
			}
			response, again := g.get("/", "Cookie", fresh)
			want(t, "the endpoint from then on", again, body)
			wantNoCookie(t, response)
		})
	}
}

func TestACookieKeepsTheBackend(t *testing.T) {
	at := named(t, "a1", "a2", "b1", "b2")
	const routes = `[{backends: [{name: a, port: 80, weight: %d}, {name: b, port: 80, weight: %d}], sessionAffinity: {cookie: {}}}]`
	services := map[string][]string{"a": {at["a1"], at["a2"]}, "b": {at["b1"], at["b2"]}}
	g := startSticky(t, sticky(t, fmt.Sprintf(routes, 0, 100), services))
	response, first := g.get("/")
	cookie, _ := cookieOf(t, response)
	want(t, "the backend", first[:1], "b")

	g.handler.Set(sticky(t, fmt.Sprintf(routes, 100, 0), services))
	for range 20 {
		response, body := g.get("/", "Cookie", cookie)
		want(t, "the endpoint of a session", body, first)
		wantNoCookie(t, response)
		_, body = g.get("/")
		want(t, "the backend of a new session", body[:1], "a")
	}
	// Another endpoint of the same backend takes over while the backend has a weight.
	left := map[string][]string{"a": services["a"], "b": slices.DeleteFunc(slices.Clone(services["b"]), func(a string) bool { return a == at[first] })}
	g.handler.Set(sticky(t, fmt.Sprintf(routes, 99, 1), left))
	response, body := g.get("/", "Cookie", cookie)
	want(t, "the backend without the endpoint", body[:1], "b")
	if fresh, _ := cookieOf(t, response); fresh == cookie {
		t.Error("the client is told the endpoint that is gone")
	}
	g.handler.Set(sticky(t, fmt.Sprintf(routes, 100, 0), left))
	_, body = g.get("/", "Cookie", cookie)
	want(t, "the backend without endpoint and weight", body[:1], "a")
	// A backend that is taken out of the list has no sessions any more.
	g.handler.Set(sticky(t, `[{backends: [{name: a, port: 80}], sessionAffinity: {cookie: {}}}]`, services))
	_, body = g.get("/", "Cookie", cookie)
	want(t, "the backend that is left", body[:1], "a")
}

func TestTheSameHeaderGetsTheSameEndpoint(t *testing.T) {
	at := named(t, "a", "b", "c", "d")
	const routes = `[{backends: [{name: one, port: 80, weight: 3}, {name: two, port: 80}], sessionAffinity: {header: {name: x-user}}}]`
	services := map[string][]string{"one": {at["a"], at["b"]}, "two": {at["c"], at["d"]}}
	g, replica := startSticky(t, sticky(t, routes, services)), startSticky(t, sticky(t, routes, services))
	reached := map[string]int{}
	for i := range 100 {
		user := fmt.Sprint("user-", i)
		response, first := g.get("/", "X-User", user)
		wantNoCookie(t, response)
		reached[first]++
		_, again := g.get("/x", "x-user", user)
		_, other := replica.get("/", "X-USER", user)
		if again != first || other != first {
			t.Fatalf("%s gets %s, then %s, and %s from the replica", user, first, again, other)
		}
	}
	if len(reached) != 4 || reached["a"]+reached["b"] < reached["c"]+reached["d"] {
		t.Errorf("users by endpoint: %v, want three quarters at a and b", reached)
	}
	for name, fields := range map[string][]string{"without the header": nil, "with an empty one": {"X-User", ""}} {
		reached := map[string]bool{}
		for range 60 {
			_, body := g.get("/", fields...)
			reached[body] = true
		}
		if len(reached) < 2 {
			t.Errorf("requests %s get only %v", name, reached)
		}
	}
}

func TestTheSameAddressGetsTheSameEndpoint(t *testing.T) {
	at := named(t, "a", "b", "c", "d")
	config := sticky(t, `[{backendService: {name: app, port: 80}, sessionAffinity: {clientAddress: {}}}]`,
		map[string][]string{"app": {at["a"], at["b"], at["c"], at["d"]}})
	g := startSticky(t, config)
	reached := map[string]bool{}
	for i := range 20 {
		_, body := g.get("/", "X-Forwarded-For", fmt.Sprint("192.0.2.", i)) // nobody believes it
		reached[body] = true
	}
	want(t, "endpoints that one client gets", len(reached), 1)

	config.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	g.handler.Set(config)
	reached = map[string]bool{}
	for i := range 40 {
		client := fmt.Sprintf("2001:db8:0:%x::1", i)
		_, first := g.get("/", "X-Forwarded-For", client)
		_, again := g.get("/", "X-Forwarded-For", fmt.Sprintf("2001:db8:0:%x::2", i))
		want(t, client, again, first)
		reached[first] = true
	}
	want(t, "endpoints that all clients get", len(reached), 4)
	reached = map[string]bool{}
	for range 40 {
		_, body := g.get("/", "X-Forwarded-For", "unknown")
		reached[body] = true
	}
	if len(reached) < 2 {
		t.Errorf("clients that nobody knows all get %v", reached)
	}
}

// A copy goes by load, and its answer sets nothing.
func TestACopyOfARequestIsNoSession(t *testing.T) {
	at := named(t, "a")
	copied := make(chan string, 10)
	mirror := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "mirror", Value: "x"})
		copied <- r.Header.Get("Cookie")
	})
	g := startSticky(t, sticky(t, `
- {backendService: {name: app, port: 80}, sessionAffinity: {cookie: {name: lb}}, mirrors: [{backendService: {name: copy, port: 80}}]}
- {path: /copy, backendService: {name: copy, port: 80}, sessionAffinity: {cookie: {name: lb}}}
`, map[string][]string{"app": {at["a"]}, "copy": {mirror}}))
	response, _ := g.get("/")
	cookie, _ := cookieOf(t, response)
	<-copied
	response, body := g.get("/", "Cookie", cookie)
	want(t, "the answer", body, "a")
	wantNoCookie(t, response)
	<-copied
}

func TestTheBackendsOwnCookiesStay(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "own", Value: "x"})
		w.Header().Set("Cache-Control", "public, max-age=60")
		_, _ = io.WriteString(w, r.Header.Get("Cookie"))
	})
	g := startSticky(t, sticky(t, `[{backendService: {name: app, port: 80}, sessionAffinity: {cookie: {name: lb}}}]`, map[string][]string{"app": {address}}))
	response, _ := g.get("/")
	set := response.Header["Set-Cookie"]
	if len(set) != 2 || set[0] != "own=x" || !strings.HasPrefix(set[1], "lb=") {
		t.Fatalf("the response sets %q", set)
	}
	if diff := cmp.Diff([]string{"public, max-age=60", `private="Set-Cookie"`}, response.Header["Cache-Control"]); diff != "" {
		t.Error(diff)
	}
	cookie, _, _ := strings.Cut(set[1], ";")
	_, body := g.get("/", "Cookie", "a=b; "+cookie)
	want(t, "what the backend gets", body, "a=b; "+cookie)
}
