package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
)

// ClientCheck is how the clients of a port prove with certificates who they are.
type ClientCheck struct {
	// Identity is equal for two values that are equal in everything else, and differs for
	// others.
	Identity string
	// Roots are the authorities that certificates must come from.
	Roots *x509.CertPool
	// Optional lets clients in that show no certificate, and those whose certificate is not
	// valid.
	Optional bool
}

// configFor is tls.Config's GetConfigForClient: the port decides whether clients must show a
// certificate.
func (c *Certificates) configFor(hello *tls.ClientHelloInfo) (config *tls.Config, err error) {
	defer c.panics.CatchError("choose how a client proves who it is", &err)
	set := c.current.Load()
	if set == nil {
		return nil, nil // it means that nothing is special
	}
	check := set.checkOf(portOfConn(hello.Conn))
	if check == nil {
		return nil, nil
	}
	client, known := hello.Conn.(*clientConn)
	if known {
		client.checked.Store(&check.Identity)
	}
	return &tls.Config{
		VerifyConnection: func(state tls.ConnectionState) (err error) {
			defer c.panics.CatchError("note who a client is", &err)
			if known {
				check.keepIdentity(client, state)
			}
			return nil
		},
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: c.Get,
		ClientAuth:     check.auth(),
		ClientCAs:      check.Roots,
		// A client that continues a session shows no certificate. It could have begun it when other
		// authorities were trusted.
		SessionTicketsDisabled: true,
	}, nil
}

func (c *ClientCheck) auth() tls.ClientAuthType {
	if c.Optional {
		return tls.RequestClientCert
	}
	return tls.RequireAndVerifyClientCert
}

// admitConnection answers a request and returns false if its client has not proven who it is, and has to. It has to if the
// certificates of now say so, and also if those say so with which the table of the request came: either may be newer for a moment.
func (e *call) admitConnection() bool {
	set, conn := e.handler.certificates.Load().set(), clientConnOf(e.r)
	switch {
	case e.r.TLS == nil && (set.requiresTLS() || e.state.secure.requiresTLS()):
		return e.Refuse(http.StatusForbidden, "client_certificate")
	case e.r.TLS == nil || conn == nil:
		return true
	case set.admits(conn) && (conn.identity.Load() != nil || !e.state.secure.requires(conn.port)):
		return true
	}
	// The client may come again with another connection, and must then prove who it is.
	e.w.Header()["Connection"] = []string{"close"}
	return e.Refuse(http.StatusMisdirectedRequest, "misdirected")
}

// set is what is served now. Nil: nothing.
func (c *Certificates) set() *certificateSet {
	if c == nil {
		return nil
	}
	return c.current.Load()
}

// admits reports whether a connection was opened as new ones of its port have to be opened.
func (s *certificateSet) admits(conn *clientConn) bool {
	if !s.requires(conn.port) {
		return true
	}
	checked := conn.checked.Load()
	return checked != nil && *checked == s.checkOf(conn.port).Identity
}

// requires reports whether the clients of a port must prove who they are.
func (s *certificateSet) requires(port int32) bool {
	if s == nil {
		return false
	}
	check := s.checkOf(port)
	return check != nil && !check.Optional
}

// requiresTLS reports whether requests without TLS are refused, since their clients cannot prove who they are.
func (s *certificateSet) requiresTLS() bool {
	return s != nil && s.clients != nil && !s.clients.Optional
}

// checkOf is how the clients of a port prove who they are. Nil: they need not.
func (s *certificateSet) checkOf(port int32) *ClientCheck {
	if of := s.ports[port]; of != nil {
		return of.clients
	}
	return s.clients
}
