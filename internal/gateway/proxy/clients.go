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
	of := set.ports[portOfConn(hello.Conn)]
	if of == nil || of.clients == nil {
		return nil, nil //nolint:nilnil // as above
	}
	if client, is := hello.Conn.(*clientConn); is {
		client.checked.Store(&of.clients.Identity)
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: c.Get,
		ClientAuth:     of.clients.auth(),
		ClientCAs:      of.clients.Roots,
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
	of := set.ports[conn.port]
	if of == nil || of.clients == nil || of.clients.Optional {
		return true
	}
	checked := conn.checked.Load()
	return checked != nil && *checked == of.clients.Identity
}
