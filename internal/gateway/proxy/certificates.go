package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// Certificates chooses the certificate for a connection by the name that the client asks
// for. They can be replaced at any time; connections that are there go on.
type Certificates struct {
	current atomic.Pointer[certificateSet]
}

// Certificate is a certificate and what it is served for.
type Certificate struct {
	tls.Certificate

	// Hosts are the names that it is served for, with or without a wildcard. Default:
	// the names in the certificate.
	Hosts []string
}

type certificateSet struct {
	byName map[string]*tls.Certificate // "*.example.com" for a wildcard
	first  *tls.Certificate            // for clients that do not say a name
}

var errNoCertificate = errors.New("no certificate for this name")

// Set replaces the certificates. Of several for a name the first is used. On an error
// nothing changes.
func (c *Certificates) Set(certificates []Certificate) error {
	next := &certificateSet{byName: map[string]*tls.Certificate{}}
	for i := range certificates {
		certificate := certificates[i].Certificate
		if certificate.Leaf == nil {
			if len(certificate.Certificate) == 0 {
				return fmt.Errorf("certificate %d is empty", i)
			}
			leaf, err := x509.ParseCertificate(certificate.Certificate[0])
			if err != nil {
				return fmt.Errorf("certificate %d: %w", i, err)
			}
			certificate.Leaf = leaf
		}
		if next.first == nil {
			next.first = &certificate
		}
		names := certificates[i].Hosts
		if len(names) == 0 {
			names = certificate.Leaf.DNSNames
		}
		for _, name := range names {
			name = strings.ToLower(name)
			if next.byName[name] == nil {
				next.byName[name] = &certificate
			}
		}
	}
	c.current.Store(next)
	return nil
}

// Get is tls.Config's GetCertificate.
func (c *Certificates) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	set := c.current.Load()
	if set == nil || set.first == nil {
		return nil, errNoCertificate
	}
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if name == "" {
		return set.first, nil
	}
	if certificate := set.byName[name]; certificate != nil {
		return certificate, nil
	}
	if dot := strings.IndexByte(name, '.'); dot > 0 {
		if certificate := set.byName["*"+name[dot:]]; certificate != nil {
			return certificate, nil
		}
	}
	return nil, errNoCertificate
}
