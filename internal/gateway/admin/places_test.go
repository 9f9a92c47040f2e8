package admin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

const probe = "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"

// port is an admin port to which a test opens connections.
type port struct {
	*testing.T

	address string
	handler *Handler
	begun   chan struct{} // gets a value for each request whose head was read
}

func (p *port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.begun <- struct{}{}
	p.handler.ServeHTTP(w, r)
}

func newPort(t *testing.T) *port {
	t.Helper()
	p := &port{
		T: t, begun: make(chan struct{}, 4*maxConnections),
		handler: New(func() bool { return true }, prometheus.NewRegistry(), document.NewBoard(clock.RealClock{}, "1")),
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = listener.Addr().String()
	server := NewServer(p)
	// What a test holds must stay held until the test releases it, also on a slow machine.
	server.ReadHeaderTimeout, server.ReadTimeout = 0, 0
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Serve(Limit(listener)) })
	t.Cleanup(func() {
		server.Close()
		wait.Wait()
	})
	return p
}

// open connects from an address of the loopback interface and sends a text.
func (p *port) open(from, text string) net.Conn {
	p.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(p.Context(), "tcp", p.address)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a limit for the test, not for the code under test
	if _, err := io.WriteString(conn, text); err != nil {
		p.Fatal(err)
	}
	return conn
}

// answered checks that a sent probe gets its answer.
func (p *port) answered(who string, conn net.Conn) {
	p.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		p.Fatalf("%s gets no answer: %v", who, err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		p.Errorf("%s is answered with %d", who, response.StatusCode)
	}
}

func TestAProbeGetsThroughWhoeverHoldsAllPlaces(t *testing.T) {
	kinds := map[string]struct {
		sends string
		// begins: the connection sends a request. ends: the request is answered, so the
		// connection is idle.
		begins, ends bool
	}{
		"silent":                       {},
		"half a head":                  {sends: "GET /readyz HTTP/1.1\r\nHost: a\r\n"},
		"idle":                         {sends: probe, begins: true, ends: true},
		"idle, then half a head":       {sends: probe + "GET /readyz HTTP/1.1\r\n", begins: true, ends: true},
		"a poll":                       {sends: "GET /revision?wait=REVISION HTTP/1.1\r\nHost: a\r\n\r\n", begins: true},
		"a request whose body is late": {sends: "GET /readyz HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n", begins: true},
	}
	tests := map[string][]string{"all of them": {}}
	for name := range kinds {
		tests[name] = []string{name}
		tests["all of them"] = append(tests["all of them"], name)
	}
	for name, names := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPort(t)
			slices.Sort(names)
			for i := range maxConnections {
				kind := kinds[names[i%len(names)]]
				conn := p.open(fmt.Sprintf("127.0.0.%d", 1+i/maxPerClient), withRevision(p.handler, kind.sends))
				if kind.begins {
					<-p.begun
				}
				if kind.ends {
					p.answered("an idle one", conn)
				}
			}
			for i := range 3 {
				p.answered(fmt.Sprintf("probe %d", i+1), p.open("127.0.0.100", probe))
			}
			// Connections from the kubelet's own address do not keep its probe out either.
			// Programs on the node share that address.
			p.answered("a probe from the same address", p.open("127.0.0.1", probe))
		})
	}
}

// addressed is a connection with an address. It only records whether it was closed.
type addressed struct {
	net.Conn

	name, from string
	closed     *[]string
}

func (a addressed) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(a.from), Port: 1}
}

func (a addressed) Close() error {
	*a.closed = append(*a.closed, a.name)
	return nil
}

func TestWhichConnectionLosesItsPlace(t *testing.T) {
	const total, perClient = 4, 2
	// A step is "name address" for a new connection. "name busy", "name idle" and "name
	// closed" are for an existing one.
	for name, test := range map[string]struct {
		steps []string
		want  []string // the connections that are closed, in order
	}{
		"none while there is room":                     {[]string{"a ::1", "b ::1", "c ::2", "d ::2"}, nil},
		"the one that is idle longest":                 {[]string{"a ::1", "b ::1", "c ::2", "d ::2", "e ::3", "f ::3"}, []string{"a", "b"}},
		"not one that is busy":                         {[]string{"a ::1", "b ::1", "c ::2", "d ::2", "a busy", "e ::3"}, []string{"b"}},
		"idle counts from the last answer":             {[]string{"a ::1", "b ::1", "c ::2", "d ::2", "a busy", "a idle", "e ::3"}, []string{"b"}},
		"none for one that has gone":                   {[]string{"a ::1", "b ::1", "c ::2", "d ::2", "c closed", "e ::3"}, []string{"c"}},
		"one that was closed for another leaves once":  {[]string{"a ::1", "b ::1", "c ::2", "d ::2", "e ::3", "a closed", "f ::3"}, []string{"a", "a", "b"}},
		"its own, above the bound of an address":       {[]string{"a ::1", "b ::2", "c ::2", "d ::2"}, []string{"b"}},
		"its own busy one, above that bound":           {[]string{"a ::1", "b ::2", "c ::2", "b busy", "c busy", "d ::2"}, []string{"b"}},
		"an idle one of its own before a busy one":     {[]string{"b ::2", "c ::2", "b busy", "d ::2"}, []string{"c"}},
		"where all are busy one of who has most":       {[]string{"a ::1", "b ::2", "c ::2", "d ::3", "a busy", "c busy", "b busy", "d busy", "e ::4"}, []string{"c"}},
		"where all are busy and alike the oldest":      {[]string{"a ::1", "b ::2", "c ::3", "d ::4", "b busy", "a busy", "c busy", "d busy", "e ::5"}, []string{"b"}},
		"IPv4 addresses are the same in either form":   {[]string{"a 192.0.2.1", "b ::ffff:192.0.2.1", "c 192.0.2.1"}, []string{"a"}},
		"the addresses of a network of IPv6 are apart": {[]string{"a 2001:db8::1", "b 2001:db8::2", "c 2001:db8::3"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var closed []string
			listener := &pipes{conns: make(chan net.Conn, 1), done: make(chan struct{})}
			places := limit(listener, total, perClient)
			conns := map[string]net.Conn{}
			for _, step := range test.steps {
				name, does, _ := strings.Cut(step, " ")
				switch does {
				case "busy":
					noteState(conns[name], http.StateActive)
				case "idle":
					noteState(conns[name], http.StateIdle)
				case "closed":
					conns[name].Close()
				default:
					listener.conns <- addressed{name: name, from: does, closed: &closed}
					conn, err := places.Accept()
					if err != nil {
						t.Fatal(err)
					}
					conns[name] = conn
				}
			}
			if diff := cmp.Diff(test.want, closed); diff != "" {
				t.Error(diff)
			}
			for _, conn := range conns {
				conn.Close()
			}
			if len(places.taken) != 0 || len(places.clients) != 0 {
				t.Errorf("counted are %v of %v", places.taken, places.clients)
			}
		})
	}
}
