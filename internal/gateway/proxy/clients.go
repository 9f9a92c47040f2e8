package proxy

import (
	"crypto/tls"
	"crypto/x509"
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
func (c *Certificates) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	set := c.current.Load()
	if set == nil {
		return nil, nil //nolint:nilnil // it means that nothing is special
	}
	check := set.checkOf(portOfConn(hello.Conn))
	if check == nil {
		return nil, nil //nolint:nilnil // as above
	}
	client, known := hello.Conn.(*clientConn)
	if known {
		client.checked.Store(&check.Identity)
	}
	return &tls.Config{
		VerifyConnection: func(state tls.ConnectionState) error {
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

// admits reports whether a connection was opened as new ones of its port have to be opened now.
func (c *Certificates) admits(conn *clientConn) bool {
	if c == nil || conn == nil {
		return true
	}
	set := c.current.Load()
	if set == nil {
		return true
	}
	check := set.checkOf(conn.port)
	if check == nil || check.Optional {
		return true
	}
	checked := conn.checked.Load()
	return checked != nil && *checked == check.Identity
}

// checkOf is how the clients of a port prove who they are. Nil: they need not.
func (s *certificateSet) checkOf(port int32) *ClientCheck {
	if of := s.ports[port]; of != nil {
		return of.clients
	}
	return s.clients
}

// requireTLS reports whether requests without TLS are refused, since their clients cannot prove who they are.
func (c *Certificates) requireTLS() bool {
	if c == nil {
		return false
	}
	set := c.current.Load()
	return set != nil && set.clients != nil && !set.clients.Optional
}
