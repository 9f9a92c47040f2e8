package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

const (
	// maxDatagram is the size of the largest datagram.
	maxDatagram = 64 << 10
	// datagramBuffer is how much the kernel may keep for a port, if it lets us.
	datagramBuffer = 1 << 20
)

// datagramBuffers hold a datagram of a backend, as long as it is forwarded. Sessions that wait have none.
var datagramBuffers = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// datagramServer serves a port for UDP. Each client address has a session with one endpoint, and a socket of its own there, so an
// answer finds its client and comes from nobody else. The number of sessions is bounded, and a session ends when it is silent.
// What there is no session for is thrown away and counted.
type datagramServer struct {
	server *Server
	conn   *net.UDPConn
	number int32
	wait   sync.WaitGroup // of the sessions
	closed atomic.Bool

	mu       sync.Mutex
	sessions map[netip.AddrPort]*session
}

func newDatagramServer(s *Server, conn *net.UDPConn) *datagramServer {
	_ = conn.SetReadBuffer(datagramBuffer)
	return &datagramServer{server: s, conn: conn, sessions: map[netip.AddrPort]*session{}}
}

// serve forwards datagrams until the port is closed.
func (d *datagramServer) serve(ctx context.Context, number int32) error {
	d.number = number
	defer d.wait.Wait()
	defer d.endAll()
	buffer := make([]byte, maxDatagram)
	for {
		n, from, err := d.conn.ReadFromUDPAddrPort(buffer)
		switch {
		case d.closed.Load():
			return http.ErrServerClosed
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			if !d.server.pause(ctx) {
				return err
			}
		default:
			d.forward(ctx, from, buffer[:n])
		}
	}
}

// Shutdown keeps serving: datagrams have no end that could be waited for, so the port is open until all others have ended.
func (d *datagramServer) Shutdown(context.Context) error { return nil }

// Close ends all sessions.
func (d *datagramServer) Close() error {
	d.closed.Store(true)
	return d.conn.Close()
}

// SetKeepAlivesEnabled does nothing.
func (d *datagramServer) SetKeepAlivesEnabled(bool) {}

func (d *datagramServer) endAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sessions {
		_ = s.conn.Close()
	}
}

// forward sends a datagram of a client to its endpoint.
func (d *datagramServer) forward(ctx context.Context, from netip.AddrPort, data []byte) {
	h := d.server.handler
	defer h.options.Panics.Catch("forward a datagram")
	for range 2 { // a session may end at the same time
		s, failure := d.session(ctx, from)
		if s == nil {
			if failure != "" {
				h.metrics.DatagramDropped(failure)
			}
			return
		}
		s.touch()
		_, err := s.conn.Write(data)
		if err == nil {
			s.received.Add(int64(len(data)))
			return
		}
		d.end(s)
		if !errors.Is(err, net.ErrClosed) { // for example, nobody listens there
			s.failure.CompareAndSwap(nil, new(upstream.Connect.String()))
			break
		}
	}
	h.metrics.DatagramDropped(upstream.Connect.String())
}

// session returns the session of a client, or begins one.
func (d *datagramServer) session(ctx context.Context, from netip.AddrPort) (*session, string) {
	d.mu.Lock()
	s := d.sessions[from]
	d.mu.Unlock()
	if s != nil && s.permitted() {
		return s, ""
	}
	if s != nil {
		d.end(s)
	}
	return d.begin(ctx, from)
}

// begin begins a session of a client. It returns nil and the reason if there can be none. An empty one was counted already.
func (d *datagramServer) begin(ctx context.Context, from netip.AddrPort) (*session, string) {
	h := d.server.handler
	current := h.current.Load()
	if current == nil {
		return nil, "no_route"
	}
	_, route, _ := current.Table.Stream(d.number, false, true, "")
	backend, failure := chooseStream(route, from.Addr())
	if backend == nil {
		return nil, failure
	}
	leave, ok := h.sessions.Enter(from.Addr())
	if !ok {
		return nil, ""
	}
	begun := false
	defer func() {
		if !begun { // an error or a panic
			leave()
		}
	}()
	place, err := current.services[backend.Index].Begin(ctx, clients.Of(from.Addr()))
	if err != nil {
		return nil, upstream.KindOf(err).String()
	}
	conn, err := h.options.dialUDP(ctx, place.Endpoint)
	if err != nil {
		place.Close()
		return nil, upstream.Connect.String()
	}
	s := &session{
		server: d, client: from, conn: conn.(*net.UDPConn), backend: backend.ID, endpoint: place.Endpoint, start: h.options.Clock.Now(),
		leave: func() { place.Close(); leave() },
	}
	begun = true
	s.of.Store(&sessionRoute{state: current, route: route})
	s.touch()
	d.mu.Lock()
	d.sessions[from] = s
	d.mu.Unlock()
	d.wait.Go(s.answer)
	return s, ""
}

func (o *Options) dialUDP(ctx context.Context, endpoint string) (net.Conn, error) {
	if o.Backends != nil {
		return o.Backends.DialContext(ctx, "udp", endpoint)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "udp", endpoint)
}

// end ends a session. Its own goroutine does the rest.
func (d *datagramServer) end(s *session) {
	d.forget(s)
	_ = s.conn.Close()
}

// forget makes the next datagram of the client begin another session.
func (d *datagramServer) forget(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sessions[s.client] == s {
		delete(d.sessions, s.client)
	}
}

// session is what a client and an endpoint send to each other.
type session struct {
	server   *datagramServer
	client   netip.AddrPort
	conn     *net.UDPConn // connected to the endpoint
	backend  string
	endpoint string
	start    time.Time
	leave    func()

	of       atomic.Pointer[sessionRoute]
	last     atomic.Int64 // when something was sent, Unix nanoseconds
	received atomic.Int64 // bytes from the client
	sent     atomic.Int64 // bytes to the client
	failure  atomic.Pointer[string]
}

// sessionRoute is the route of a session in a state.
type sessionRoute struct {
	state *state
	route *table.Route
}

// unansweredTimeout is how long a session without an answer is kept. Who pretends addresses gets none, and must not keep sessions
// from others.
const unansweredTimeout = 10 * time.Second

// ends is when the session ends if nothing more is sent.
func (s *session) ends() time.Time {
	timeout := s.server.server.handler.options.SessionTimeout
	if s.sent.Load() == 0 {
		timeout = min(timeout, unansweredTimeout)
	}
	return time.Unix(0, s.last.Load()).Add(timeout)
}

func (s *session) touch() {
	s.last.Store(s.server.server.handler.options.Clock.Now().UnixNano())
}

// permitted reports whether the current table would let the client begin the session now.
func (s *session) permitted() bool {
	current := s.server.server.handler.current.Load()
	if s.of.Load().state == current {
		return true
	}
	_, route, _ := current.Table.Stream(s.server.number, false, true, "")
	if route == nil || route.Unavailable != nil || route.ClientAddresses != nil && !route.ClientAddresses.Admit(s.client.Addr()) {
		return false
	}
	at := slices.IndexFunc(route.Backends, func(b table.WeightedBackend) bool { return b.ID == s.backend && b.Weight > 0 })
	if at < 0 || !slices.Contains(route.Backends[at].Endpoints, s.endpoint) {
		return false
	}
	s.of.Store(&sessionRoute{state: current, route: route})
	return true
}

// answer sends what the endpoint answers to the client, until the session is silent or ended.
func (s *session) answer() {
	h := s.server.server.handler
	defer h.options.Panics.Catch("forward the answers to datagrams")
	returned := false
	defer func() {
		if !returned {
			s.failure.Store(new(failurePanic))
		}
		h.reportSession(s)
	}()
	defer s.leave()
	defer s.server.end(s)
	s.forwardAnswers()
	returned = true
}

func (s *session) forwardAnswers() {
	for {
		idle := s.ends()
		if s.conn.SetReadDeadline(idle) != nil {
			return
		}
		err := s.answerOne()
		var timeout net.Error
		switch {
		case err == nil:
		case errors.As(err, &timeout) && timeout.Timeout():
			if s.ends().After(s.server.server.handler.options.Clock.Now()) {
				continue
			}
			return
		case errors.Is(err, net.ErrClosed):
			return
		default: // nobody listens there
			s.failure.CompareAndSwap(nil, new(upstream.Connect.String()))
			return
		}
	}
}

// answerOne waits for a datagram of the endpoint and forwards it. Who waits has no buffer.
func (s *session) answerOne() error {
	buffer, n, err := receive(s.conn)
	if buffer != nil {
		defer datagramBuffers.Put(buffer)
	}
	if err != nil {
		return err
	}
	if !s.permitted() {
		return net.ErrClosed
	}
	s.touch()
	if _, err := s.server.conn.WriteToUDPAddrPort(buffer[:n], s.client); err != nil {
		s.server.server.handler.metrics.DatagramDropped("client_write")
		return nil
	}
	s.sent.Add(int64(n))
	return nil
}
