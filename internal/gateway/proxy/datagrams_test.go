package proxy

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/connlimit"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// datagramBackend answers each datagram with its name and what it got.
func datagramBackend(t testing.TB, name string) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, maxDatagram)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = conn.WriteTo([]byte(name+" "+string(buffer[:n])), from)
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return conn.LocalAddr().String()
}

type datagramGateway struct {
	*gateway

	place    Place
	log      logLines
	registry *prometheus.Registry
}

func startDatagrams(t *testing.T, options Options, services map[string][]string, backends ...model.BackendRef) *datagramGateway {
	t.Helper()
	g := &datagramGateway{place: freePlace(t), registry: prometheus.NewPedanticRegistry()}
	g.place.Kind = PortUDP
	options.AccessLog, options.Metrics = &g.log, g.registry
	g.gateway = startTable(t, options, g.table(t, services, backends...))
	g.listens(t, g.place)
	return g
}

func (g *datagramGateway) table(t *testing.T, services map[string][]string, backends ...model.BackendRef) *table.Table {
	t.Helper()
	number := int32(netip.MustParseAddrPort(g.place.Address).Port())
	return streamTable(t, []table.Listener{{Port: number, Transport: model.TransportUDP}, {Port: number, Transport: model.TransportTCP}},
		[]table.Rule{{Name: "udp", Transport: model.TransportUDP, StrictShares: true, Backends: backends}}, services)
}

// client is a client with an address of its own.
func (g *datagramGateway) client(t *testing.T) *net.UDPConn {
	t.Helper()
	conn, err := net.Dial("udp", g.place.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.UDPConn)
}

// ask sends a datagram and returns the answer. It is empty if there is none in a while.
func ask(t *testing.T, conn *net.UDPConn, text string) string {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return hear(t, conn, 10*time.Second)
}

func hear(t *testing.T, conn *net.UDPConn, within time.Duration) string {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(within))
	buffer := make([]byte, maxDatagram)
	n, err := conn.Read(buffer)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return string(buffer[:n])
}

func (g *datagramGateway) drops(t *testing.T, reason string) float64 {
	t.Helper()
	return series(t, g.registry)["slipway_gateway_datagrams_dropped_total "+reason]
}

func TestDatagramsGoToOneEndpointAndBack(t *testing.T) {
	g := startDatagrams(t, Options{SessionTimeout: 100 * time.Millisecond}, map[string][]string{"app": {datagramBackend(t, "a"), datagramBackend(t, "b"), datagramBackend(t, "c")}}, to("app")...)
	one, two := g.client(t), g.client(t)
	big := strings.Repeat("x", 60_000)
	first := ask(t, one, "hello")
	for _, text := range []string{"1", "", big} {
		if got := ask(t, one, text); got != first[:2]+text {
			t.Errorf("sent %d bytes, got %d: %.20q", len(text), len(got), got)
		}
		if got := ask(t, two, text); !strings.HasSuffix(got, " "+text) {
			t.Errorf("another client: sent %d bytes, got %.20q", len(text), got)
		}
	}
	eventually(t, "silent sessions end", func() bool { return g.handler.sessions.Open() == 0 })
	eventually(t, "a line", func() bool {
		return g.log.has(`"protocol":"UDP","route":"udp","received":60006,"bytes":60014,`, `"client":"127.0.0.1"`)
	})
	service := g.handler.registry.Service("app:1/udp", nil)
	if service.Requests() != 0 || service.Busy() != 0 {
		t.Errorf("%d places at the Service and %d at endpoints are taken", service.Requests(), service.Busy())
	}
}

func TestASessionEndsWithWhatPermittedIt(t *testing.T) {
	services := map[string][]string{"app": {datagramBackend(t, "a")}, "other": {datagramBackend(t, "o")}}
	g := startDatagrams(t, Options{}, services, to("app")...)
	client := g.client(t)
	if got := ask(t, client, "x"); got != "a x" {
		t.Fatalf("got %q", got)
	}
	g.handler.Set(Config{Table: g.table(t, services, to("app")...), LogPercent: 100})
	if got := ask(t, client, "x"); got != "a x" || g.handler.sessions.Open() != 1 {
		t.Errorf("another table with the same: got %q with %d sessions", got, g.handler.sessions.Open())
	}
	g.handler.Set(Config{Table: g.table(t, services, to("other")...), LogPercent: 100})
	if got := ask(t, client, "x"); got != "o x" {
		t.Errorf("with another backend: got %q", got)
	}
	g.handler.Set(Config{Table: g.table(t, services), LogPercent: 100})
	_, _ = client.Write([]byte("x"))
	eventually(t, "it is thrown away", func() bool { return g.drops(t, "no_backend") == 1 })
	eventually(t, "the session has ended", func() bool { return g.handler.sessions.Open() == 0 })
	g.handler.Set(Config{Table: g.table(t, services, to("app")...), LogPercent: 100})
	if got := ask(t, client, "x"); got != "a x" {
		t.Errorf("with the first backend again: got %q", got)
	}
}

func TestTheNumberOfSessionsIsBounded(t *testing.T) {
	services := map[string][]string{"app": {datagramBackend(t, "a")}}
	g := startDatagrams(t, Options{}, services, to("app")...)
	g.handler.Set(Config{Table: g.table(t, services, to("app")...), LogPercent: 100, Connections: connlimit.Limits{Total: 4}})
	var clients []*net.UDPConn
	for range 3 { // one address gets three quarters
		client := g.client(t)
		clients = append(clients, client)
		if got := ask(t, client, "x"); got != "a x" {
			t.Fatalf("got %q", got)
		}
	}
	_, _ = g.client(t).Write([]byte("x"))
	eventually(t, "it is thrown away", func() bool { return g.drops(t, "max_per_client") == 1 })
	if got := ask(t, clients[0], "y"); got != "a y" {
		t.Errorf("a client that has a session: got %q", got)
	}
	want(t, "sessions", g.handler.sessions.Open(), 3)
}

func TestAnEndpointThatDoesNotListenCostsItsSession(t *testing.T) {
	free := freePlace(t)
	g := startDatagrams(t, Options{}, map[string][]string{"app": {free.Address}}, to("app")...)
	_, _ = g.client(t).Write([]byte("x"))
	eventually(t, "a line", func() bool { return g.log.has(`"protocol":"UDP"`, `"failure":"connect"`) })
	want(t, "sessions", g.handler.sessions.Open(), 0)
}

func TestDatagramsAndConnectionsShareANumber(t *testing.T) {
	g := startDatagrams(t, Options{}, map[string][]string{"app": {datagramBackend(t, "a")}}, to("app")...)
	connections := Place{Address: g.place.Address, Kind: PortTCP}
	g.listens(t, g.place, connections)
	if _, err := dialTCP(t, connections.Address).Read(make([]byte, 1)); err == nil {
		t.Error("a connection without a route is open")
	}
	if got := ask(t, g.client(t), "x"); got != "a x" {
		t.Errorf("got %q", got)
	}
	g.listens(t, connections)
	eventually(t, "the sessions of the closed port have ended", func() bool { return g.handler.sessions.Open() == 0 })
}

// Who pretends addresses gets no answers, and holds places for a short time only.
func TestASessionWithoutAnAnswerEndsSooner(t *testing.T) {
	handler := New(Options{SessionTimeout: time.Minute})
	s := &session{server: &datagramServer{server: &Server{handler: handler}}}
	now := time.Unix(1000, 0)
	s.last.Store(now.UnixNano())
	want(t, "without an answer", s.ends().Sub(now), unansweredTimeout)
	s.sent.Add(1)
	want(t, "after an answer", s.ends().Sub(now), time.Minute)
	handler.options.SessionTimeout = time.Second
	s.sent.Store(0)
	want(t, "where all end sooner", s.ends().Sub(now), time.Second)
}
