//go:build apitest

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestTwoHTTPRoutesAreMatchedByHostAndPath(t *testing.T) {
	c := newSite(t)
	one, two := newBackend(t, "one"), newBackend(t, "two")
	c.serve("one", one)
	c.serve("two", two)
	port := environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
	r := c.runGateway()
	environment.Eventually(t, func() error {
		if !r.ready() {
			return errors.New("not ready")
		}
		return nil
	})
	r.says(nil, "http")
	if got := gets(port, "a.example.com", "/"); got != "404" {
		t.Errorf("without a route: got %q", got)
	}
	first := c.put("HTTPRoute", "first", `{parentRefs: [{name: edge}], hostnames: [a.example.com, "*.b.example.com"], rules: [{matches: [{path: {value: /}}], `+to("one")+`}]}`)
	second := c.put("HTTPRoute", "second", `{parentRefs: [{name: edge}], hostnames: [a.example.com], rules: [{name: api, matches: [{path: {value: /api}}], `+to("two")+`}]}`)
	c.put("HTTPRoute", "others", `{parentRefs: [{name: other}], rules: [{`+to("two")+`}]}`)
	r.says([]string{routeDigest(first), routeDigest(second)}, "http")
	for _, want := range []struct{ host, path, answer string }{
		{"a.example.com", "/", "one"},
		{"a.example.com", "/api/users", "two"},
		{"a.example.com", "/apis", "one"},
		{"x.b.example.com", "/api", "one"},
		{"b.example.com", "/", "404"},
		{"c.example.com", "/", "404"},
	} {
		if got := gets(port, want.host, want.path); got != want.answer {
			t.Errorf("%s%s: got %q, want %q", want.host, want.path, got, want.answer)
		}
	}
	_, metrics := fetch(r.admin, "/metrics")
	if want := fmt.Sprintf(`slipway_gateway_requests_total{gateway="%[1]s/edge",route="httproute/%[1]s/second/api",status="2xx"}`, c.namespace); !strings.Contains(metrics, want) {
		t.Errorf("no %s in\n%s", want, metrics)
	}
	environment.Eventually(t, func() error {
		if want := fmt.Sprintf(`"gateway":"%[1]s/edge","route":"httproute/%[1]s/second/api"`, c.namespace); !strings.Contains(r.accessLog.String(), want) {
			return fmt.Errorf("no %s in the access log", want)
		}
		return nil
	})
	first = c.put("HTTPRoute", "first", `{parentRefs: [{name: edge}], hostnames: [a.example.com], rules: [{`+to("two")+`}]}`)
	r.says([]string{routeDigest(first), routeDigest(second)}, "http")
	r.answersOn(port, "a.example.com", "/", "two")
	r.answersOn(port, "x.b.example.com", "/", "404")
	c.delete(c.object("HTTPRoute", "second"))
	r.says([]string{routeDigest(first)}, "http")
}

func TestAGrantGivesABackendOfAnotherNamespaceAndTakesIt(t *testing.T) {
	c := newSite(t)
	other := c.elsewhere(t)
	b := newBackend(t, "there")
	other.serve("app", b)
	port := environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
	route := c.put("HTTPRoute", "route", `{parentRefs: [{name: edge}], rules: [{backendRefs: [{name: app, namespace: `+other.namespace+`, port: 80}]}]}`)
	r := c.runGateway()
	r.says([]string{routeDigest(route)}, "http")
	r.answersOn(port, "a", "/", "500")
	grant := `{from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: ` + c.namespace + `}], to: [{group: "", kind: Service}]}`
	other.put("ReferenceGrant", "grant", grant)
	r.answersOn(port, "a", "/", "there")
	last := make(chan time.Time, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { last <- lastAnswer(ctx, port, "there") }()
	other.delete(other.object("ReferenceGrant", "grant"))
	r.answersOn(port, "a", "/", "500")
	gone := time.Now()
	<-time.After(3 * time.Second) // it must not come back
	stop()
	if after := (<-last).Sub(gone); after > 0 {
		t.Errorf("a request was refused, and the backend was used %v later", after)
	}
}

// lastAnswer asks without a pause, on connections that are kept, until the context ends, and returns when a request was sent last
// that a backend has answered.
func lastAnswer(ctx context.Context, port int, name string) (last time.Time) {
	const clients = 4
	times := make(chan time.Time, clients)
	for range clients {
		go func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			var at time.Time
			for ctx.Err() == nil {
				sent := time.Now()
				if getsOn(transport, port, "a", "/") == name {
					at = sent
				}
			}
			times <- at
		}()
	}
	for range clients {
		if at := <-times; at.After(last) {
			last = at
		}
	}
	return last
}

func TestAnInvalidBackendKeepsItsShare(t *testing.T) {
	c := newSite(t)
	c.serve("app", newBackend(t, "app"))
	port := environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
	c.put("HTTPRoute", "route", `{parentRefs: [{name: edge}], rules: [{backendRefs: [{name: app, port: 80, weight: 1}, {name: none, port: 80, weight: 1}]}]}`)
	r := c.runGateway()
	r.answersOn(port, "a", "/", "app")
	counts := map[string]int{}
	for range 200 {
		counts[gets(port, "a", "/")]++
	}
	if counts["app"]+counts["500"] != 200 || counts["500"] < 60 || counts["500"] > 140 {
		t.Errorf("got %v, want about a half with 500", counts)
	}
}

func TestListenersComeAndGo(t *testing.T) {
	c := newSite(t)
	c.serve("app", newBackend(t, "app"))
	one, two := environment.FreePort(t), environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("one", one, "")))
	route := c.put("HTTPRoute", "route", `{parentRefs: [{name: edge}], rules: [{`+to("app")+`}]}`)
	r := c.runGateway()
	r.says([]string{routeDigest(route)}, "one")
	if got := gets(one, "a", "/"); got != "app" {
		t.Errorf("got %q", got)
	}
	g := c.put("Gateway", "edge", gatewaySpec(httpListener("one", one, ""), httpListener("two", two, ", hostname: b.example.com")))
	r.says([]string{routeDigest(route)}, "one", "two")
	if got := r.revision(); got.UID != g.GetUID() || got.Generation != g.GetGeneration() || got.Listeners[1].Digest != document.ListenerDigest(int32(two), false, "b.example.com", nil) {
		t.Errorf("got %+v", got)
	}
	if got := gets(two, "b.example.com", "/"); got != "app" {
		t.Errorf("on the second port: got %q", got)
	}
	if got := gets(two, "a.example.com", "/"); got != "404" {
		t.Errorf("another host on the second port: got %q", got)
	}
	c.put("Gateway", "edge", gatewaySpec(httpListener("one", one, "")))
	r.says([]string{routeDigest(route)}, "one")
	if got := gets(two, "b.example.com", "/"); !strings.Contains(got, "refused") {
		t.Errorf("on the closed port: got %q", got)
	}

	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	number := taken.Addr().(*net.TCPAddr).Port
	c.put("Gateway", "edge", gatewaySpec(httpListener("one", one, ""), httpListener("taken", number, "")))
	environment.Eventually(t, func() error {
		if got := r.revision(); len(got.Problems) != 1 || got.Problems[0].Reason != "PortUnavailable" {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
	r.says([]string{routeDigest(route)}, "one")
	if got := gets(one, "a", "/"); got != "app" || !r.ready() {
		t.Errorf("beside a port that is taken: got %q, ready %t", got, r.ready())
	}
	taken.Close()
	r.says([]string{routeDigest(route)}, "one", "taken")
	r.answersOn(number, "a", "/", "app")
}
