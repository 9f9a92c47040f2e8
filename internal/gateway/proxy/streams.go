package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// endTLS is how TLS of clients is ended for connections whose bytes are forwarded. Nil: it is not.
func (s *Server) endTLS(transport model.Transport) *tls.Config {
	if transport != model.TransportTCP || s.tls == nil {
		return nil
	}
	config := s.tls.Clone()
	config.NextProtos = nil // nobody here knows what is spoken
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		of, err := s.options.Certificates.configFor(hello)
		if of != nil {
			of.NextProtos = nil
		}
		return of, err
	}
	return config
}

// streamServer serves a port for TCP.
type streamServer struct {
	server *Server

	mu       sync.Mutex
	listener net.Listener
	closed   bool
}

// serve accepts connections until the listener is closed.
func (s *streamServer) serve(ctx context.Context, listener net.Listener, number int32) error {
	s.mu.Lock()
	s.listener = listener
	closed := s.closed
	s.mu.Unlock()
	if closed {
		_ = listener.Close()
		return http.ErrServerClosed
	}
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return s.ended(err)
		case err != nil:
			if !s.server.pause(ctx) { // such as too many open files
				return err
			}
			continue
		}
		client, ok := conn.(*clientConn)
		if !ok {
			_ = conn.Close()
			continue
		}
		go s.server.forwardStream(ctx, client, number)
	}
}

// ended is why serving has ended.
func (s *streamServer) ended(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return http.ErrServerClosed
	}
	return err
}

// acceptPause is how long no connection is accepted when that was not possible.
const acceptPause = 10 * time.Millisecond

// pause waits before a further attempt. It reports whether there is to be one.
func (s *Server) pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-s.options.Clock.After(acceptPause):
		return true
	}
}

// forwardStream forwards a connection of a port for TCP.
func (s *Server) forwardStream(ctx context.Context, conn *clientConn, number int32) {
	defer s.handler.options.Panics.CatchClosing("forward a connection", conn)
	r := newRelay(s, conn, model.TransportTCP)
	r.state = s.handler.current.Load()
	if r.state != nil {
		_, r.route, _ = r.state.Table.Stream(number, false, false, "")
	}
	r.serve(ctx, nil)
}

// Shutdown accepts no new connections. Who waits for those that are open is the Server.
func (s *streamServer) Shutdown(context.Context) error { return s.Close() }

// Close accepts no new connections.
func (s *streamServer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

// SetKeepAlivesEnabled does nothing: a connection has no end that the gateway would know.
func (s *streamServer) SetKeepAlivesEnabled(bool) {}
