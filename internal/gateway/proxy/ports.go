package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"
)

// Place is where a Server listens.
type Place struct {
	// Address is host:port. Without a host, all addresses of the machine.
	Address string
	// Secure means that clients speak TLS.
	Secure bool
}

// port is a listener of a Server. It has an http.Server of its own, so that it can end
// without the others.
type port struct {
	listener net.Listener
	server   *http.Server
	secure   bool
	conns    conns              // all that are open, also tunnels
	closing  bool               // guarded by the mutex of the Server
	cut      context.CancelFunc // ends waiting for its connections; nil unless it closes
}

// Listen listens at exactly these places, from now on. A place that stays is not touched.
// The connections of one that is closed may end what they do, for DrainTimeout at most:
// clients of HTTP/1 get no answer to a further request on them, and those of HTTP/2 are told
// with GOAWAY. It returns the places that could not be opened. The next call tries again.
func (s *Server) Listen(ctx context.Context, places []Place) map[Place]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	for place, p := range s.ports {
		if !slices.Contains(places, place) {
			delete(s.ports, place)
			s.drainPort(ctx, p)
		}
	}
	failed := map[Place]error{}
	for _, place := range places {
		if s.ports[place] != nil {
			continue
		}
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", place.Address)
		if err != nil {
			failed[place] = fmt.Errorf("listen: %w", err)
			continue
		}
		p := s.newPort(listener, place.Secure)
		s.ports[place] = p
		s.startPort(p, 0)
	}
	return failed
}

// newPort returns a port that does not serve yet. The caller holds the mutex.
func (s *Server) newPort(listener net.Listener, secure bool) *port {
	p := &port{listener: listener, secure: secure, server: newHTTPServer(s.handler, s.options)}
	if secure {
		p.server.Protocols.SetHTTP2(true)
		p.server.TLSConfig = s.tls.Clone()
	} else {
		p.server.Protocols.SetUnencryptedHTTP2(true)
	}
	p.server.SetKeepAlivesEnabled(!s.handler.standby.Load())
	s.all[p] = true
	return p
}

// startPort serves a port in the background. number is the port that the listeners of the
// table name. 0: that of the address.
func (s *Server) startPort(p *port, number int32) {
	s.serving.Go(func() {
		accepting := s.listener(p.listener, number, &p.conns)
		var err error
		if p.secure {
			err = p.server.ServeTLS(accepting, "", "")
		} else {
			err = p.server.Serve(accepting)
		}
		s.mu.Lock()
		closing := p.closing
		s.mu.Unlock()
		if closing || errors.Is(err, http.ErrServerClosed) {
			return
		}
		select {
		case s.failed <- fmt.Errorf("serve %s: %w", p.listener.Addr(), err):
		default: // one error is enough to end
		}
	})
}

// drainPort closes a port, and lets its connections end in the background. The caller holds
// the mutex.
func (s *Server) drainPort(ctx context.Context, p *port) {
	p.closing = true
	_ = p.listener.Close() // at once, so that the address can be opened again
	ctx, p.cut = context.WithTimeout(context.WithoutCancel(ctx), s.options.DrainTimeout)
	s.serving.Go(func() {
		if p.server.Shutdown(ctx) != nil {
			_ = p.server.Close() // cuts the requests that are left
		}
		p.conns.wait(ctx) // for tunnels
		s.mu.Lock()
		defer s.mu.Unlock()
		p.cut()
		delete(s.all, p)
	})
}

// everyPort returns all ports, also those that are closing.
func (s *Server) everyPort() []*port {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*port, 0, len(s.all))
	for p := range s.all {
		all = append(all, p)
	}
	return all
}

// Open reports whether the server listens anywhere.
func (s *Server) Open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ports) > 0
}

// defaultDrainTimeout is the default of ServerOptions.DrainTimeout.
const defaultDrainTimeout = 30 * time.Second
