package proxy

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// reported sends what panicked to a channel.
func reported() (panics.Reporter, chan string) {
	doing := make(chan string, 100)
	return func(what string, _ any, _ []byte) { doing <- what }, doing
}

// breakServices gives the gateway a defect: what uses a Service panics.
func (g *gateway) breakServices(names ...string) {
	g.t.Helper()
	current := *g.handler.current.Load()
	current.services = slices.Clone(current.services)
	for _, name := range names {
		broken := 0
		for _, backend := range current.Table.Backends {
			if backend.Service == name {
				current.services[backend.Index] = nil
				broken++
			}
		}
		if broken == 0 {
			g.t.Fatalf("the table has no Service %s", name)
		}
	}
	g.handler.bindSteps(&current)
	g.handler.current.Store(&current)
}

func TestAPanicEndsOneRequestAlone(t *testing.T) {
	backend, _ := recording(t)
	report, doing := reported()
	rule := func(name, to string, mirrors ...model.MirrorRef) table.Rule {
		return table.Rule{Name: name, Path: "/" + name, Backends: []model.BackendRef{backendTo(to)}, Mirrors: mirrors}
	}
	mirror := model.MirrorRef{Namespace: "shop", Service: "broken", Port: 80, Numerator: 1, Denominator: 1}
	var log lockedbuffer.Buffer
	g := startTable(t, Options{Panics: report, AccessLog: &log}, compileRules(t, table.Input{Rules: []table.Rule{
		rule("well", "app"), rule("panics", "broken"), rule("copied", "app", mirror),
	}}, map[string]string{"app": backend, "broken": backend}))
	g.breakServices("broken")
	for range 3 {
		response, err := http.DefaultClient.Do(g.request("GET", "/panics"))
		if err == nil {
			t.Errorf("the request that panics is answered with %d", response.StatusCode)
			_ = response.Body.Close()
		}
		want(t, "told", <-doing, "serve a request")
	}
	for range 3 {
		response, _ := g.get("/copied")
		want(t, "the request whose copy panics", response.StatusCode, 200)
		want(t, "told", <-doing, "copy a request")
	}
	g.handler.features.mirror.Wait()
	eventually(t, "the requests that panic are in the access log", func() bool {
		return strings.Count(log.String(), `"failure":"panic"`) == 3
	})
	want(t, "copies in flight", g.handler.features.mirror.InFlight(), 0)
	response, _ := g.get("/well")
	want(t, "another request", response.StatusCode, 200)
}

func TestAPanicEndsOneConnectionAlone(t *testing.T) {
	report, doing := reported()
	g, place := tcpGateway(t, Options{Panics: report}, map[string][]string{"app": {says(t, "app")}}, to("app")...)
	g.breakServices("app")
	for range 3 {
		got, err := io.ReadAll(dialTCP(t, place.Address))
		if len(got) != 0 || err != nil {
			t.Errorf("got %q, %v, want the end", got, err)
		}
		want(t, "told", <-doing, "forward a connection")
	}
	eventually(t, "no connection counts", func() bool { return g.handler.connections.Open() == 0 })
}

func TestAPanicEndsOneConnectionOfTLSAlone(t *testing.T) {
	report, doing := reported()
	var certificates Certificates
	if err := certificates.Set([]Certificate{certificate(t, 1, "a")}); err != nil {
		t.Fatal(err)
	}
	place := freePlace(t)
	place.Kind = PortTLS
	number := int32(netip.MustParseAddrPort(place.Address).Port())
	g := startServer(t, Options{Panics: report}, ServerOptions{Certificates: &certificates}, streamTable(t,
		[]table.Listener{{Port: number, Secure: true, Hostname: "broken.test", Transport: model.TransportTLS}},
		[]table.Rule{{Name: "broken", Host: "broken.test", Transport: model.TransportTLS, StrictShares: true, Backends: to("app")}},
		map[string][]string{"app": {says(t, "app")}}))
	g.listens(t, place)
	g.breakServices("app")
	for range 3 {
		conn := tls.Client(dialTCP(t, place.Address), &tls.Config{ServerName: "broken.test", InsecureSkipVerify: true})
		if err := conn.Handshake(); err == nil {
			t.Error("the handshake is done")
		}
		want(t, "told", <-doing, "sort a connection")
	}
}

func TestAPanicEndsOneDatagramAlone(t *testing.T) {
	report, doing := reported()
	g := startDatagrams(t, Options{Panics: report}, map[string][]string{"app": {"127.0.0.1:9"}}, to("app")...)
	g.breakServices("app")
	client := g.client(t)
	for range 3 {
		_, _ = client.Write([]byte("x"))
		want(t, "told", <-doing, "forward a datagram")
	}
	want(t, "sessions that count", g.handler.sessions.Open(), 0)
}

// mined is a connection to a backend with a defect.
type mined struct{ net.Conn }

func (m mined) Write([]byte) (int, error) { panic("a defect") }

// What forwards one direction of a connection has a goroutine of its own.
func TestAPanicInOneDirectionEndsBoth(t *testing.T) {
	report, doing := reported()
	silent := listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	_, place := tcpGateway(t, Options{Panics: report, Upstream: upstream.Options{Dial: func(ctx context.Context, address string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", address)
		return mined{conn}, err
	}}}, map[string][]string{"app": {silent}}, to("app")...)
	conn := dialTCP(t, place.Address)
	_, _ = io.WriteString(conn, "x")
	if got, err := io.ReadAll(conn); len(got) != 0 || err != nil {
		t.Errorf("got %q, %v, want the end", got, err)
	}
	want(t, "told", <-doing, "forward a connection")
}

// Who would be let in without an answer is not let in because of a defect.
func TestADefectLetsNobodyIn(t *testing.T) {
	backend, _ := recording(t)
	report, doing := reported()
	routes := `[{backendService: {name: app, port: 80}, auth: {external: {backendService: {name: app, port: 80}, onFailure: LetIn}}}]`
	g := start(t, Options{Panics: report, Upstream: upstream.Options{Dial: func(context.Context, string) (net.Conn, error) { panic("a defect") }}}, routes, backend)
	response, _ := g.get("/")
	want(t, "status", response.StatusCode, 503)
	want(t, "told", <-doing, "connect to an endpoint")
}
