package proxy

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/clienthello"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// sorter is the listener of a port with TLS. It keeps the connections that are for listeners which are not for HTTP, and returns
// the others. It reads the first message of TLS in the background, so that a connection which is slow with it holds up no other.
type sorter struct {
	net.Listener

	server   *Server
	port     int32
	accepted chan sortedConn
	// open ends with the listener.
	open context.Context // the listener is what it bounds
	end  context.CancelFunc
}

type sortedConn struct {
	conn net.Conn
	err  error
}

// sort returns a sorter of the connections of a listener.
func (s *Server) sort(ctx context.Context, below net.Listener, port int32) net.Listener {
	l := &sorter{Listener: below, server: s, port: port, accepted: make(chan sortedConn)}
	l.open, l.end = context.WithCancel(context.WithoutCancel(ctx))
	go l.run()
	return l
}

// Accept returns the next connection for HTTP.
func (l *sorter) Accept() (net.Conn, error) {
	select {
	case next := <-l.accepted:
		return next.conn, next.err
	case <-l.open.Done():
		return nil, net.ErrClosed
	}
}

// Close closes the listener. Connections that were not sorted yet are closed, too.
func (l *sorter) Close() error {
	l.end()
	return l.Listener.Close()
}

func (l *sorter) run() {
	for {
		conn, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			l.end()
			return
		case err != nil:
			l.deliver(sortedConn{err: err})
			continue
		}
		client, ok := conn.(*clientConn)
		if current := l.server.handler.current.Load(); ok && current != nil && current.Table.Streams(l.port, true) {
			go l.sort(client)
			continue
		}
		l.deliver(sortedConn{conn: conn})
	}
}

// deliver hands over a connection, or closes it where nobody takes it any more.
func (l *sorter) deliver(next sortedConn) {
	select {
	case l.accepted <- next:
	case <-l.open.Done():
		if next.conn != nil {
			_ = next.conn.Close()
		}
	}
}

// sort finds out which listener a connection is for.
func (l *sorter) sort(conn *clientConn) {
	h := l.server.handler
	defer h.options.Panics.CatchClosing("sort a connection", conn)
	r := newRelay(l.server, conn, model.TransportTLS)
	stop := context.AfterFunc(l.open, func() { _ = conn.Conn.Close() }) // ends reading
	defer stop()
	_ = conn.SetReadDeadline(h.options.Clock.Now().Add(l.server.options.HeaderTimeout))
	name, seen, err := clienthello.Read(conn)
	if !stop() {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	r.name, conn.ahead = name, seen
	r.state = h.current.Load()
	if err != nil {
		r.refuse("client_hello")
		return
	}
	transport, route, found := r.state.Table.Stream(l.port, true, false, name)
	if found && transport == model.TransportHTTP {
		l.deliver(sortedConn{conn: conn})
		return
	}
	r.transport, r.route = transport, route
	r.serve(context.WithoutCancel(l.open), l.server.endTLS(transport))
}
