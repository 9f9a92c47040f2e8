package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// TLS is how the endpoints of a Service are reached with TLS. Version 1.2 is the oldest.
type TLS struct {
	// Identity is equal for two values that are equal in everything else, and differs for
	// others. Connections are shared only by what has the same.
	Identity string
	// ServerName is sent to the endpoint. Without Names and URIs, its certificate must be for
	// this name. Required.
	ServerName string
	// Roots are the authorities that an endpoint's certificate must come from. Nil: those of
	// the system.
	Roots *x509.CertPool
	// Names and URIs are alternative names, of which the certificate must have one. With any
	// of them, it need not be for ServerName. A name that begins with "*." must be in the
	// certificate as it is; another one may be covered by a wildcard there.
	Names []string
	URIs  []string
	// Certificate is shown to endpoints that ask for one. Nil: none is.
	Certificate *tls.Certificate
}

// config returns the configuration for connections that speak a protocol.
func (t *TLS) config(protocol string) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, RootCAs: t.Roots}
	if protocol != "" {
		config.NextProtos = []string{protocol}
	}
	if t.Certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.Certificate, nil }
	}
	if len(t.Names)+len(t.URIs) > 0 {
		// The standard check knows one name only. What it would check is checked by verify.
		config.InsecureSkipVerify = true
		config.VerifyConnection = t.verify
	}
	return config
}

// verify checks the certificate of an endpoint, and that it has one of the alternative names.
func (t *TLS) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the endpoint has shown no certificate")
	}
	leaf, between := state.PeerCertificates[0], x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		between.AddCert(certificate)
	}
	// Without a name, everything but the name is checked. Without usages, it must be a server's.
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: t.Roots, Intermediates: between}); err != nil {
		return err
	}
	if !t.names(leaf) {
		return fmt.Errorf("the certificate of the endpoint has none of the names %q", slices.Concat(t.Names, t.URIs))
	}
	return nil
}

// names reports whether a certificate has one of the alternative names.
func (t *TLS) names(leaf *x509.Certificate) bool {
	for _, name := range t.Names {
		if strings.HasPrefix(name, "*.") {
			if slices.ContainsFunc(leaf.DNSNames, func(has string) bool { return strings.EqualFold(has, name) }) {
				return true
			}
			continue
		}
		if leaf.VerifyHostname(name) == nil {
			return true
		}
	}
	for _, uri := range leaf.URIs {
		if slices.Contains(t.URIs, uri.String()) {
			return true
		}
	}
	return false
}

// same reports whether connections for one may be used for the other.
func (t *TLS) same(other *TLS) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.Identity == other.Identity
}
