package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/connlimit"
	"github.com/slipway-dev/slipway/internal/gateway/proxyprotocol"
	"github.com/slipway-dev/slipway/internal/gateway/sockets"
)

const (
	// maxFrameBytes bounds an HTTP/2 frame, because each connection keeps a buffer of this
	// size. It is the smallest bound that the protocol allows.
	maxFrameBytes = 16 << 10
	// streamWindow bounds how much of a body an HTTP/2 client may send before it is read. A connection has room for all of
	// its bodies: they may be of many people behind one proxy, for many backends, and one that nobody reads must hold up no
	// other. So what waits in a replica is bounded by the requests in flight.
	streamWindow = 128 << 10
)

// ServerOptions configures a Server. The zero value of a field means its default.
type ServerOptions struct {
	// HTTP is the listener for HTTP/1.1 and HTTP/2 without TLS. Optional.
	HTTP net.Listener
	// HTTPS is the listener for both with TLS. Optional.
	HTTPS net.Listener
	// HTTPPort and HTTPSPort are the ports of HTTP and HTTPS, as the listeners of the table
	// name them. Default: the ports of their addresses.
	HTTPPort  int32
	HTTPSPort int32
	// LoadBalancer begins each connection with a header of the PROXY protocol. Nil: they begin without.
	LoadBalancer *LoadBalancer
	// Certificates are the certificates for HTTPS.
	Certificates *Certificates
	// ErrorLog receives errors about connections. Default: the standard logger.
	ErrorLog *log.Logger
	// Clock gives the time. Default: the real clock.
	Clock clock.WithTicker

	// HeaderTimeout bounds how long a client may take to send the head of a request,
	// including the TLS handshake. Default 10 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long an idle connection is kept. Default 2 min.
	IdleTimeout time.Duration
	// MaxHeaderBytes bounds the head of a request. Default 64 KiB.
	MaxHeaderBytes int
	// MaxStreams bounds the concurrent requests on an HTTP/2 connection. Default 250.
	MaxStreams int
	// DrainTimeout bounds how long the connections of a port that is closed at run time may
	// go on. Default 30 s.
	DrainTimeout time.Duration
}

// LoadBalancer begins each connection with a header of the PROXY protocol.
type LoadBalancer struct {
	// Sources are the addresses that it connects from. Empty: any.
	Sources []netip.Prefix
}

// Server serves a Handler.
type Server struct {
	handler *Handler
	options ServerOptions
	tls     *tls.Config
	lingers conns         // closed, but read until their clients have read the last answer
	down    chan struct{} // closed when Shutdown has returned
	isDown  sync.Once
	failed  chan error     // why a port has failed
	serving sync.WaitGroup // of all ports

	mu    sync.Mutex
	ports map[Place]*port // those of Listen
	all   map[*port]bool  // those of the options and those that are closing, too
	ended bool            // no port is opened any more
}

// NewServer returns a server of the handler.
func NewServer(handler *Handler, options ServerOptions) *Server {
	if options.HeaderTimeout == 0 {
		options.HeaderTimeout = 10 * time.Second
	}
	if options.IdleTimeout == 0 {
		options.IdleTimeout = 2 * time.Minute
	}
	if options.MaxHeaderBytes == 0 {
		options.MaxHeaderBytes = 64 << 10
	}
	if options.MaxStreams == 0 {
		options.MaxStreams = 250
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.DrainTimeout == 0 {
		options.DrainTimeout = defaultDrainTimeout
	}
	s := &Server{handler: handler, options: options, down: make(chan struct{}), failed: make(chan error, 1), ports: map[Place]*port{}, all: map[*port]bool{}}
	if options.Certificates != nil {
		options.Certificates.panics = handler.options.Panics
		handler.certificates.Store(options.Certificates)
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: options.Certificates.Get, GetConfigForClient: options.Certificates.configFor}
	}
	return s
}

func newHTTPServer(handler http.Handler, options ServerOptions) *http.Server {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: options.HeaderTimeout,
		IdleTimeout:       options.IdleTimeout,
		MaxHeaderBytes:    options.MaxHeaderBytes,
		ErrorLog:          options.ErrorLog,
		ConnContext:       withClientConn,
		ConnState:         watchProtocol,
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          options.MaxStreams,
			MaxReadFrameSize:              maxFrameBytes,
			MaxReceiveBufferPerConnection: options.MaxStreams * streamWindow,
			MaxReceiveBufferPerStream:     streamWindow,
			SendPingTimeout:               30 * time.Second,
			PingTimeout:                   15 * time.Second,
			WriteByteTimeout:              time.Minute,
		},
		// The table decides about OPTIONS * as about every other request.
		DisableGeneralOptionsHandler: true,
	}
	server.Protocols.SetHTTP1(true)
	return server
}

func (s *Server) listener(listener net.Listener, port int32, open *conns) net.Listener {
	return &clientListener{Listener: s.counted(listener), port: port, clock: s.options.Clock, open: open, lingering: &s.lingers}
}

// portNumber is the port of an address.
func portNumber(of net.Addr) int32 {
	address, err := netip.ParseAddrPort(of.String())
	if err != nil {
		return 0
	}
	return int32(address.Port())
}

// counted returns a listener whose connections are bounded, and know their clients.
func (s *Server) counted(listener net.Listener) net.Listener {
	counter := &s.handler.connections
	listener = sockets.Listen(listener)
	if s.options.LoadBalancer == nil {
		return counter.Listen(listener)
	}
	return proxyprotocol.Listen(counter.ListenUnclaimed(listener), proxyprotocol.Options{
		Sources: s.options.LoadBalancer.Sources, Timeout: s.options.HeaderTimeout, Clock: s.options.Clock,
		Refused: func() { counter.Refuse(connlimit.Unannounced) }, Panics: s.handler.options.Panics,
	})
}

// Run serves until Shutdown has returned. Meanwhile it runs the background work of the
// handler.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { s.handler.registry.Run(ctx, s.options.Clock) })
	wait.Go(func() { s.handler.features.auth.RunKeys(ctx, s.options.Clock) })
	wait.Go(func() { s.handler.features.auth.RunProviders(ctx, s.options.Clock) })
	logged := make(chan error, 1)
	go func() { logged <- s.handler.log.Run(ctx, s.options.Clock) }()

	s.startOptions(ctx)
	var failure error
	select {
	case failure = <-s.failed:
		s.closePorts()
	case <-s.down: // until then, requests in flight need the background work
	}
	s.serving.Wait()
	cancel()
	return errors.Join(failure, <-logged)
}

// startOptions serves the listeners of the options.
func (s *Server) startOptions(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended { // shut down before it ran
		for _, listener := range []net.Listener{s.options.HTTP, s.options.HTTPS} {
			if listener != nil {
				_ = listener.Close()
			}
		}
		return
	}
	if s.options.HTTP != nil {
		s.startPort(ctx, s.newPort(s.options.HTTP, PortHTTP), s.options.HTTPPort)
	}
	if s.options.HTTPS != nil {
		s.startPort(ctx, s.newPort(s.options.HTTPS, PortTLS), s.options.HTTPSPort)
	}
}

// closePorts closes everything, and opens nothing any more.
func (s *Server) closePorts() {
	s.mu.Lock()
	s.ended = true
	for p := range s.all {
		if p.cut != nil {
			p.cut()
		}
	}
	s.mu.Unlock()
	for _, p := range s.everyPort() {
		_ = p.server.Close()
	}
}

// Drain makes every response tell its client to open a new connection for its next request.
// New connections and requests are still served.
func (s *Server) Drain() { s.handler.draining.Store(true) }

// Standby does the same while it is on, and also closes idle connections. New connections
// and requests are still served.
func (s *Server) Standby(on bool) {
	if s.handler.standby.Swap(on) == on {
		return
	}
	for _, p := range s.everyPort() {
		p.server.SetKeepAlivesEnabled(!on)
	}
}

// sendsAway reports whether clients should open a new connection for their next request.
func (h *Handler) sendsAway() bool { return h.draining.Load() || h.standby.Load() }

// Shutdown accepts no new connections and waits for requests and tunnels. When the context
// ends, it cuts those that are left.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.isDown.Do(func() { close(s.down) })
	s.Drain()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	var wait sync.WaitGroup
	all := s.everyPort()
	results := make(chan error, len(all))
	for _, p := range all {
		wait.Go(func() { results <- p.server.Shutdown(ctx) })
	}
	wait.Wait()
	s.handler.tunnels.wait(ctx)
	s.closePorts()
	s.lingers.wait(ctx)
	close(results)
	var failure error
	for err := range results {
		failure = errors.Join(failure, err)
	}
	return failure
}
