package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Certificates chooses a certificate by the server name that the client sends. They can be
// replaced at any time. Open connections stay open.
type Certificates struct {
	current atomic.Pointer[certificateSet]
}

// Certificate is a certificate with the host names for which it is served.
type Certificate struct {
	tls.Certificate

	// Secret is the name of the Secret that holds it.
	Secret string
	// Hosts are the host names for which it is served. Wildcards are allowed. Default: the
	// names in the certificate.
	Hosts []string
}

type certificateSet struct {
	byName map[string]*tls.Certificate // "*.example.com" for a wildcard
	first  *tls.Certificate            // for clients that send no server name
	// expiries are the expiry times by the name of the Secret.
	expiries map[string]time.Time
}

var errNoCertificate = errors.New("no certificate for this name")

// Set replaces the certificates. If several match a name, the first is used. On an error
// nothing changes.
func (c *Certificates) Set(certificates []Certificate) error {
	next := &certificateSet{byName: map[string]*tls.Certificate{}, expiries: map[string]time.Time{}}
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
		next.expiries[certificates[i].Secret] = certificate.Leaf.NotAfter
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

// Expiries returns the expiry times by the name of the Secret.
func (c *Certificates) Expiries() map[string]time.Time {
	if set := c.current.Load(); set != nil {
		return set.expiries
	}
	return nil
}

// Get is tls.Config's GetCertificate.
func (c *Certificates) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	set := c.current.Load()
	if set == nil || set.first == nil {
		return nil, errNoCertificate
	}
	name := serverName(hello.ServerName)
	if name == "" {
		return set.first, nil
	}
	if certificate := set.find(name); certificate != nil {
		return certificate, nil
	}
	return nil, errNoCertificate
}

// differ reports whether a request's host has another certificate than the server name for
// which the connection was opened. A client may use one connection for several hosts only
// if they share a certificate. It returns false if the client sent no server name, or if
// the host has no certificate.
func (c *Certificates) differ(server, host string) bool {
	if server == "" || server == host || c == nil {
		return false
	}
	set := c.current.Load()
	if set == nil {
		return false
	}
	wanted := set.find(host)
	if wanted == nil {
		return false
	}
	served := set.find(serverName(server))
	return served == nil || !bytes.Equal(served.Leaf.Raw, wanted.Leaf.Raw)
}

// serverName normalizes a server name for the lookup of its certificate.
func serverName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// find returns the certificate for a name in lower case, or nil.
func (s *certificateSet) find(name string) *tls.Certificate {
	if certificate := s.byName[name]; certificate != nil {
		return certificate
	}
	if dot := strings.IndexByte(name, '.'); dot > 0 {
		return s.byName["*"+name[dot:]]
	}
	return nil
}
