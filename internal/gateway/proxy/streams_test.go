package proxy

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	addresssetting "github.com/slipway-dev/slipway/internal/gateway/feature/address"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// tcpGateway is a gateway with a port for TCP whose connections go to these endpoints.
func tcpGateway(t *testing.T, options Options, services map[string][]string, backends ...model.BackendRef) (*gateway, Place) {
	t.Helper()
	place := freePlace(t)
	place.Kind = PortTCP
	g := startTable(t, options, tcpTable(t, place, services, backends...))
	g.listens(t, place)
	return g, place
}

func tcpTable(t *testing.T, place Place, services map[string][]string, backends ...model.BackendRef) *table.Table {
	t.Helper()
	number := int32(netip.MustParseAddrPort(place.Address).Port())
	return streamTable(t, []table.Listener{{Port: number, Transport: model.TransportTCP}},
		[]table.Rule{{Name: "tcp", Transport: model.TransportTCP, StrictShares: true, Backends: backends}, {Name: "later", Transport: model.TransportTCP, Backends: to("later")}}, services)
}

func dialTCP(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn.(*net.TCPConn)
}

// says is a backend that tells its name, and ends its side first.
func says(t *testing.T, name string) string {
	return listen(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, name)
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	})
}

func TestEachSideOfAConnectionEndsByItself(t *testing.T) {
	received := make(chan string, 1)
	backend := listen(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "the first word")
		_ = conn.(*net.TCPConn).CloseWrite()
		text, _ := io.ReadAll(conn)
		received <- string(text)
	})
	_, place := tcpGateway(t, Options{}, map[string][]string{"app": {backend}}, to("app")...)
	conn := dialTCP(t, place.Address)
	got, err := io.ReadAll(conn)
	if string(got) != "the first word" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	_, _ = io.WriteString(conn, "the last word")
	_ = conn.CloseWrite()
	want(t, "received", <-received, "the last word")
}

func TestConnectionsAreSharedByWeight(t *testing.T) {
	services := map[string][]string{"a": {says(t, "a")}, "b": {says(t, "b")}, "idle": {says(t, "idle")}, "later": {says(t, "later")}}
	refs := to("a", "b", "idle")
	refs[0].Weight, refs[2].Weight = 3, 0
	_, place := tcpGateway(t, Options{}, services, refs...)
	got := map[string]int{}
	for range 200 {
		text, err := io.ReadAll(dialTCP(t, place.Address))
		if err != nil {
			t.Fatal(err)
		}
		got[string(text)]++
	}
	if got["a"]+got["b"] != 200 || got["b"] < 20 || got["b"] > 85 {
		t.Errorf("got %v", got)
	}
}

func TestAnEndpointOutOfReachIsPassedOver(t *testing.T) {
	free := freePlace(t)
	var log logLines
	g, place := tcpGateway(t, Options{AccessLog: &log}, map[string][]string{"app": {free.Address, says(t, "there")}}, to("app")...)
	for range 20 {
		conn := dialTCP(t, place.Address)
		if text, err := io.ReadAll(conn); string(text) != "there" || err != nil {
			t.Fatalf("got %q, %v", text, err)
		}
		_ = conn.Close()
	}
	service := g.handler.registry.Service("app:1/tcp", nil)
	eventually(t, "the other one is ejected", func() bool { return cmp.Equal(service.Ejected(), []string{free.Address}) })
	eventually(t, "nothing is left open", func() bool { return service.Busy() == 0 && service.Requests() == 0 })
}

func TestASilentConnectionEnds(t *testing.T) {
	var log logLines
	_, place := tcpGateway(t, Options{StreamTimeout: 50 * time.Millisecond, AccessLog: &log}, map[string][]string{
		"app": {listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })},
	}, to("app")...)
	conn := dialTCP(t, place.Address)
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("it goes on")
	}
	eventually(t, "a line", func() bool { return log.has(`"received":1,`, `"failure":"idle"`) })
}

// silentConn calls a function for each Read, and has nothing to read.
type silentConn struct {
	net.Conn

	read func()
}

func (c *silentConn) SetReadDeadline(time.Time) error { return nil }

func (c *silentConn) Read([]byte) (int, error) {
	c.read()
	return 0, os.ErrDeadlineExceeded
}

// One direction alone keeps a connection open.
func TestAConnectionIsIdleInBothDirections(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	idle := &idleness{clock: clock}
	idle.bound.Store(int64(time.Minute))
	idle.touch()
	reads := 0
	conn := &idleConn{&silentConn{read: func() {
		clock.Step(50 * time.Second)
		if reads++; reads < 10 {
			idle.touch() // a byte in the other direction
			clock.Step(50 * time.Second)
		}
	}}, idle}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || !idle.over.Load() {
		t.Errorf("got %v, over %t", err, idle.over.Load())
	}
	want(t, "reads", reads, 10)
}

func TestAConnectionIsOpenUntilItsPortHasDrained(t *testing.T) {
	place := freePlace(t)
	place.Kind = PortTCP
	backend := listen(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	g := startServer(t, Options{}, ServerOptions{DrainTimeout: 200 * time.Millisecond}, tcpTable(t, place, map[string][]string{"app": {backend}}, to("app")...))
	g.listens(t, place)
	conn := dialTCP(t, place.Address)
	echo := func() error {
		if _, err := conn.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	}
	if err := echo(); err != nil {
		t.Fatal(err)
	}
	g.listens(t) // closes the port
	if _, err := net.Dial("tcp", place.Address); err == nil {
		t.Error("the port is open")
	}
	if err := echo(); err != nil {
		t.Errorf("at once: %v", err)
	}
	eventually(t, "the connection is cut", func() bool { return echo() != nil })
}

// A metric that is there twice would make all of them unreadable.
func TestAPortThatIsReachedInSeveralWaysIsToldOnce(t *testing.T) {
	services := map[string][]string{"app": {"192.0.2.1:1", "192.0.2.2:1"}}
	compiled := streamTable(t, []table.Listener{{Port: 1}, {Port: 2, Transport: model.TransportTCP}, {Port: 3, Transport: model.TransportUDP}}, []table.Rule{
		{Name: "http", Listeners: []int{0}, Backends: to("app")},
		{Name: "tcp", Listeners: []int{1}, Transport: model.TransportTCP, Backends: to("app")},
		{Name: "udp", Listeners: []int{2}, Transport: model.TransportUDP, Backends: to("app")},
	}, services)
	want(t, "backends", len(compiled.Backends), 3)
	states := startTable(t, Options{}, compiled).handler.BackendStates()
	if len(states) != 1 || states[0].Service != "app" || states[0].Available != 6 {
		t.Errorf("got %+v", states)
	}
}

func TestConnectionsAndDatagramsAreLetInByAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		rule *addresssetting.Rule
		in   bool
	}{
		"nothing is asked":  {nil, true},
		"they are allowed":  {&addresssetting.Rule{Allow: []string{"127.0.0.0/8"}}, true},
		"others are":        {&addresssetting.Rule{Allow: []string{"192.0.2.0/24"}}, false},
		"they are denied":   {&addresssetting.Rule{Deny: []string{"127.0.0.1"}}, false},
		"others are denied": {&addresssetting.Rule{Deny: []string{"192.0.2.0/24"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			services := map[string][]string{"a": {says(t, "a")}, "later": nil}
			g, place := tcpGateway(t, Options{}, services, to("a")...)
			admit(t, g, place, model.TransportTCP, services, tc.rule)
			got, _ := io.ReadAll(dialTCP(t, place.Address))
			want(t, "a connection is let in", string(got) == "a", tc.in)

			services = map[string][]string{"a": {datagramBackend(t, "a")}}
			d := startDatagrams(t, Options{}, services, to("a")...)
			client := d.client(t)
			want(t, "before", ask(t, client, "1"), "a 1")
			admit(t, d.gateway, d.place, model.TransportUDP, services, tc.rule)
			if tc.in {
				want(t, "a datagram", ask(t, client, "2"), "a 2")
				return
			}
			if _, err := client.Write([]byte("2")); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the datagram is dropped", func() bool { return d.drops(t, "client_address") > 0 })
			want(t, "the answer", hear(t, client, 50*time.Millisecond), "")
		})
	}
}

// admit has the routes of a port let clients in by their address.
func admit(t *testing.T, g *gateway, place Place, transport model.Transport, services map[string][]string, rule *addresssetting.Rule) {
	t.Helper()
	number := int32(netip.MustParseAddrPort(place.Address).Port())
	g.handler.Set(Config{Table: streamTable(t, []table.Listener{{Port: number, Transport: transport}},
		[]table.Rule{{Name: "only", Transport: transport, StrictShares: true, Backends: to("a"), Settings: list.Settings{ClientAddresses: rule}}}, services)})
}

// A client that never closes, and says nothing, must not hold the place of a backend that has closed.
func TestAClientThatNeverClosesIsCutOffAfterItsBackend(t *testing.T) {
	ended := make(chan struct{})
	backend := listen(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "a")
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
		close(ended)
	})
	place := freePlace(t)
	place.Kind = PortTCP
	g := startTable(t, Options{ClientTimeout: 100 * time.Millisecond}, tcpTable(t, place, map[string][]string{"a": {backend}}, to("a")...))
	g.listens(t, place)
	got, err := io.ReadAll(dialTCP(t, place.Address))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "what the backend says", string(got), "a")
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the backend still waits for the client")
	}
}
