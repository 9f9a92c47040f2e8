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

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// Certificates chooses a certificate by the server name that the client sends. They can be
// replaced at any time. Open connections stay open.
type Certificates struct {
	current atomic.Pointer[certificateSet]
	panics  panics.Reporter
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
	// ports are the listeners of SetListeners and of SetChecked. They count for their ports. Set by SetListeners, nothing else counts.
	ports         map[int32]*securePort
	onlyListeners bool
	// clients is how clients of ports without listeners prove who they are. Nil: they need not.
	clients *ClientCheck
	// expiries are the expiry times by the name of the Secret.
	expiries map[string]time.Time
}

var errNoCertificate = errors.New("no certificate for this name")

// Set replaces the certificates. If several match a name, the first is used. On an error
// nothing changes.
func (c *Certificates) Set(certificates []Certificate) error { return c.SetChecked(certificates, nil) }

// SetChecked does the same, and says how clients prove who they are. Nil: they need not. Otherwise requests without TLS are refused,
// unless the check is optional. Ports of listeners have their own certificates, and nobody is asked there.
func (c *Certificates) SetChecked(certificates []Certificate, clients *ClientCheck, listeners ...SecureListener) error {
	next := &certificateSet{byName: map[string]*tls.Certificate{}, expiries: map[string]time.Time{}, clients: clients, ports: map[int32]*securePort{}}
	for i := range listeners {
		if err := next.addListener(&listeners[i]); err != nil {
			return fmt.Errorf("listener %d: %w", i, err)
		}
	}
	for i := range certificates {
		certificate, err := next.add(&certificates[i])
		if err != nil {
			return fmt.Errorf("certificate %d: %w", i, err)
		}
		if next.first == nil {
			next.first = certificate
		}
		names := certificates[i].Hosts
		if len(names) == 0 {
			names = certificate.Leaf.DNSNames
		}
		for _, name := range names {
			name = strings.ToLower(name)
			if next.byName[name] == nil {
				next.byName[name] = certificate
			}
		}
	}
	c.current.Store(next)
	return nil
}

// add returns a certificate with its parsed leaf.
func (s *certificateSet) add(in *Certificate) (*tls.Certificate, error) {
	certificate := in.Certificate
	if certificate.Leaf == nil {
		if len(certificate.Certificate) == 0 {
			return nil, errors.New("it is empty")
		}
		leaf, err := x509.ParseCertificate(certificate.Certificate[0])
		if err != nil {
			return nil, err
		}
		certificate.Leaf = leaf
	}
	s.expiries[in.Secret] = certificate.Leaf.NotAfter
	return &certificate, nil
}

// Expiries returns the expiry times by the name of the Secret.
func (c *Certificates) Expiries() map[string]time.Time {
	if set := c.current.Load(); set != nil {
		return set.expiries
	}
	return nil
}

// Get is tls.Config's GetCertificate.
func (c *Certificates) Get(hello *tls.ClientHelloInfo) (certificate *tls.Certificate, err error) {
	defer c.panics.CatchError("choose a certificate", &err)
	set := c.current.Load()
	if set == nil {
		return nil, errNoCertificate
	}
	name := serverName(hello.ServerName)
	var found *tls.Certificate
	switch {
	case set.isListeners(portOfConn(hello.Conn)):
		found = set.ofListener(hello, name)
	case name == "":
		found = set.first
	default:
		found = set.find(name)
	}
	if found == nil {
		if !set.knows(portOfConn(hello.Conn), name) {
			endHandshake(hello.Conn, alertNoName(hello))
		}
		return nil, errNoCertificate
	}
	return found, nil
}

// knows reports whether a name is that of a listener, though it has no certificate. That is an internal error.
func (s *certificateSet) knows(port int32, name string) bool {
	return s.isListeners(port) && s.ports[port].find(name) != nil
}

// differ reports whether a request's host has another certificate than the server name for
// which the connection was opened. A client may use one connection for several hosts only
// if they share a certificate. It returns false if the client sent no server name, or if the
// host has no certificate. With listeners it reports whether another listener than that of
// the server name is for the host.
func (c *Certificates) differ(port int32, server, host string) bool {
	if server == host || c == nil {
		return false
	}
	set := c.current.Load()
	if set == nil {
		return false
	}
	if set.isListeners(port) {
		at := set.ports[port]
		wanted := at.find(host)
		return wanted != nil && wanted != at.find(serverName(server))
	}
	wanted := set.find(host)
	if wanted == nil || server == "" {
		return false
	}
	served := set.find(serverName(server))
	return served == nil || !bytes.Equal(served.Leaf.Raw, wanted.Leaf.Raw)
}

// isListeners reports whether a port has listeners with certificates of their own.
func (s *certificateSet) isListeners(port int32) bool { return s.onlyListeners || s.ports[port] != nil }

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
