package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// TLS is how the endpoints of a Service are reached with TLS. Version 1.2 is the oldest.
type TLS model.BackendTLS

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
