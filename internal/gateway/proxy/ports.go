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
	// Kind says what clients speak.
	Kind PortKind
}

// PortKind says what clients speak on a port.
type PortKind uint8

// The kinds of ports.
const (
	// PortHTTP is for HTTP without TLS.
	PortHTTP PortKind = iota
	// PortTLS is for HTTP with TLS, and for whatever else begins with TLS.
	PortTLS
	// PortTCP is for connections whose bytes are forwarded.
	PortTCP
	// PortUDP is for datagrams.
	PortUDP
)

// port is a listener of a Server. It has a server of its own, so that it can end without the
// others.
type port struct {
	listener net.Listener // nil for UDP
	packets  *net.UDPConn // for UDP
	server   portServer
	kind     PortKind
	conns    conns              // all that are open, also tunnels
	closing  bool               // guarded by the mutex of the Server
	cut      context.CancelFunc // ends waiting for its connections; nil unless it closes
}

// portServer serves a port. http.Server is one.
type portServer interface {
	Shutdown(ctx context.Context) error
	Close() error
	SetKeepAlivesEnabled(on bool)
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
		p, err := s.openPort(ctx, place)
		if err != nil {
			failed[place] = fmt.Errorf("listen: %w", err)
			continue
		}
		s.ports[place] = p
		s.startPort(ctx, p, 0)
	}
	return failed
}

// openPort opens a port that does not serve yet. The caller holds the mutex.
func (s *Server) openPort(ctx context.Context, place Place) (*port, error) {
	var config net.ListenConfig
	if place.Kind != PortUDP {
		listener, err := config.Listen(ctx, "tcp", place.Address)
		if err != nil {
			return nil, err
		}
		return s.newPort(listener, place.Kind), nil
	}
	packets, err := config.ListenPacket(ctx, "udp", place.Address)
	if err != nil {
		return nil, err
	}
	p := s.newPort(nil, place.Kind)
	p.packets = packets.(*net.UDPConn)
	p.server = newDatagramServer(s, p.packets)
	return p, nil
}

// newPort returns a port that does not serve yet. The caller holds the mutex.
func (s *Server) newPort(listener net.Listener, kind PortKind) *port {
	p := &port{listener: listener, kind: kind}
	s.all[p] = true
	switch kind {
	case PortUDP: // openPort makes its server
	case PortTCP:
		p.server = &streamServer{server: s}
	default:
		of := newHTTPServer(s.handler, s.options)
		if kind == PortTLS {
			of.Protocols.SetHTTP2(true)
			of.TLSConfig = s.tls.Clone()
		} else {
			of.Protocols.SetUnencryptedHTTP2(true)
		}
		of.SetKeepAlivesEnabled(!s.handler.standby.Load())
		p.server = of
	}
	return p
}

// startPort serves a port in the background. number is the port that the listeners of the
// table name. 0: that of the address.
func (s *Server) startPort(ctx context.Context, p *port, number int32) {
	ctx = context.WithoutCancel(ctx)
	s.serving.Go(func() {
		err := s.servePort(ctx, p, number)
		s.mu.Lock()
		closing := p.closing
		s.mu.Unlock()
		if closing || errors.Is(err, http.ErrServerClosed) {
			return
		}
		select {
		case s.failed <- fmt.Errorf("serve %s: %w", p.address(), err):
		default: // one error is enough to end
		}
	})
}

// servePort serves a port until it is closed.
func (s *Server) servePort(ctx context.Context, p *port, number int32) error {
	if number == 0 {
		number = portNumber(p.address())
	}
	if p.kind == PortUDP {
		return p.server.(*datagramServer).serve(ctx, number)
	}
	accepting := s.listener(p.listener, number, &p.conns)
	switch p.kind {
	case PortTCP:
		return p.server.(*streamServer).serve(ctx, accepting, number)
	case PortTLS:
		return p.server.(*http.Server).ServeTLS(s.sort(ctx, accepting, number), "", "")
	default:
		return p.server.(*http.Server).Serve(accepting)
	}
}

// address is where the port is.
func (p *port) address() net.Addr {
	if p.packets != nil {
		return p.packets.LocalAddr()
	}
	return p.listener.Addr()
}

// close accepts nothing any more.
func (p *port) close() {
	if p.packets != nil {
		_ = p.packets.Close()
		return
	}
	_ = p.listener.Close()
}

// drainPort closes a port, and lets its connections end in the background. The caller holds
// the mutex.
func (s *Server) drainPort(ctx context.Context, p *port) {
	p.closing = true
	p.close() // at once, so that the address can be opened again
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
