package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// relay is a connection whose bytes are forwarded as they are.
type relay struct {
	server    *Server
	conn      *clientConn
	state     *state
	transport model.Transport
	start     time.Time

	name   string       // that the client has asked for with TLS
	route  *table.Route // nil: there is none
	client netip.Addr

	endpoint string
	failure  string
	received int64 // from the client
	sent     int64 // to the client
}

func newRelay(s *Server, conn *clientConn, transport model.Transport) *relay {
	r := &relay{server: s, conn: conn, transport: transport, start: s.handler.options.Clock.Now()}
	if address, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		r.client = address.Addr().Unmap()
	}
	return r
}

// serve forwards the connection until both sides have ended. secure is how TLS of the client is ended. Nil: it is not.
func (r *relay) serve(ctx context.Context, secure *tls.Config) {
	r.server.handler.tunnels.add(r.conn)
	defer r.server.handler.tunnels.remove(r.conn)
	returned := false
	defer func() {
		if !returned {
			r.failure = failurePanic
		}
		r.server.handler.reportRelay(r)
	}()
	defer r.conn.Close()
	r.forward(ctx, secure)
	returned = true
}

func (r *relay) forward(ctx context.Context, secure *tls.Config) {
	backend := r.choose()
	if backend == nil {
		return
	}
	var client net.Conn = r.conn
	if secure != nil {
		client = tls.Server(r.conn, secure)
		_ = r.conn.SetDeadline(r.server.handler.options.Clock.Now().Add(r.server.options.HeaderTimeout))
		if err := client.(*tls.Conn).HandshakeContext(ctx); err != nil {
			r.failure = "tls"
			return
		}
		_ = r.conn.SetDeadline(time.Time{})
		defer client.Close()
	}
	service := r.state.services[backend.Index]
	to, err := service.Connect(ctx, clients.Of(r.client))
	if err != nil {
		r.failure = upstream.KindOf(err).String()
		return
	}
	r.endpoint = to.Endpoint
	defer to.Close()
	r.copy(client, to)
}

// choose picks the backend of the route. It returns nil if there is none.
func (r *relay) choose() *table.WeightedBackend {
	backend, failure := chooseStream(r.route, r.client)
	r.failure = failure
	return backend
}

// chooseStream picks a backend of a route for connections or datagrams, or tells why there is none.
func chooseStream(route *table.Route, client netip.Addr) (backend *table.WeightedBackend, failure string) {
	switch {
	case route == nil:
		return nil, "no_route"
	case route.Unavailable != nil:
		return nil, exchange.FailureRoute
	case route.ClientAddresses != nil && !route.ClientAddresses.Admit(client):
		return nil, "client_address"
	}
	backend, lack := route.Pick(rand.Uint64())
	switch lack {
	case table.LackNothing:
		return backend, ""
	case table.LackEndpoints:
		return nil, upstream.NoEndpoints.String()
	default:
		return nil, exchange.FailureNoBackend
	}
}

// refuse closes the connection.
func (r *relay) refuse(failure string) {
	r.failure = failure
	_ = r.conn.Close()
	r.server.handler.reportRelay(r)
}

// copy forwards both directions. Each ends by itself.
func (r *relay) copy(client, to net.Conn) {
	idle := &idleness{clock: r.server.handler.options.Clock, both: []net.Conn{client, to}}
	idle.bound.Store(int64(r.server.handler.options.StreamTimeout))
	idle.touch()
	from, backend := &idleConn{client, idle}, &idleConn{to, idle}
	var wait sync.WaitGroup
	var panicked error
	wait.Go(func() {
		defer r.server.handler.options.Panics.CatchError("forward a connection", &panicked)
		r.received = pipe(backend, from, to, client)
	})
	defer wait.Wait() // also after a panic, which has closed both
	r.sent = pipe(from, backend, client, to)
	// Nothing more is sent to the client. It has some time to notice that and to close too.
	idle.shorten(r.server.handler.options.ClientTimeout)
	wait.Wait()
	switch {
	case panicked != nil:
		r.failure = failurePanic
	case idle.over.Load():
		r.failure = "idle"
	}
}

// idleness tells since when no byte has come on a connection in either direction.
type idleness struct {
	clock clock.PassiveClock
	bound atomic.Int64 // nanoseconds
	last  atomic.Int64 // Unix nanoseconds
	over  atomic.Bool
	// both are the sides. Who waits on one hears of a shorter bound.
	both []net.Conn
}

func (i *idleness) touch() { i.last.Store(i.clock.Now().UnixNano()) }

// end is when the connection ends if no further byte comes.
func (i *idleness) end() time.Time {
	return time.Unix(0, i.last.Load()).Add(time.Duration(i.bound.Load()))
}

// shorten begins another, shorter bound now.
func (i *idleness) shorten(bound time.Duration) {
	i.touch()
	i.bound.Store(int64(bound))
	for _, side := range i.both {
		_ = side.SetReadDeadline(i.end())
	}
}

// idleConn is one side of a connection that ends when it is idle.
type idleConn struct {
	net.Conn

	idle *idleness
}

// Read reads until the connection is idle in both directions.
func (c *idleConn) Read(p []byte) (int, error) {
	for {
		if err := c.SetReadDeadline(c.idle.end()); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(p)
		if n > 0 {
			c.idle.touch()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if n > 0 {
				return n, nil
			}
			if c.idle.clock.Now().Before(c.idle.end()) {
				continue // there were bytes in the other direction
			}
			c.idle.over.Store(true)
		}
		return n, err
	}
}

// Write writes. Who takes nothing for as long is gone.
func (c *idleConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(c.idle.clock.Now().Add(time.Duration(c.idle.bound.Load()))); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
