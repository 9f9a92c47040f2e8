package proxy

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"
)

// SecureListener is a listener with its certificates. It is a listener of the table.
type SecureListener struct {
	// Port is the port of the connections.
	Port int32
	// Hostname is a lower case DNS name, or one after "*.", which covers names of any depth.
	// Empty: every name, and clients that send none.
	Hostname string
	// Certificates are served to its clients: the first one that contains the name and
	// that the client supports, or else the first one. Without a certificate, no client can
	// connect. Hosts of the certificates are not looked at.
	Certificates []Certificate
	// Clients is how clients of the port prove who they are. It is that of the first listener
	// of a port that has any. Nil: they need not.
	Clients *ClientCheck
}

// securePort has the listeners of a port.
type securePort struct {
	clients  *ClientCheck // nil: clients need not prove who they are
	exact    map[string]*secureListener
	wildcard map[string]*secureListener // by the part after "*."
	any      *secureListener
}

type secureListener struct{ certificates []*tls.Certificate }

// SetListeners replaces the certificates by those of listeners. A listener is chosen by port
// and server name, as the table chooses one by port and host: one without wildcard, then the
// longest wildcard, then one without host name. On an error nothing changes.
func (c *Certificates) SetListeners(listeners []SecureListener) error {
	next := &certificateSet{expiries: map[string]time.Time{}, ports: map[int32]*securePort{}, onlyListeners: true}
	for i := range listeners {
		if err := next.addListener(&listeners[i]); err != nil {
			return fmt.Errorf("listener %d: %w", i, err)
		}
	}
	c.current.Store(next)
	return nil
}

// addListener adds a listener with its certificates.
func (s *certificateSet) addListener(in *SecureListener) error {
	l := &secureListener{}
	for n := range in.Certificates {
		certificate, err := s.add(&in.Certificates[n])
		if err != nil {
			return fmt.Errorf("certificate %d: %w", n, err)
		}
		l.certificates = append(l.certificates, certificate)
	}
	if s.ports[in.Port] == nil {
		s.ports[in.Port] = &securePort{exact: map[string]*secureListener{}, wildcard: map[string]*secureListener{}}
	}
	if s.ports[in.Port].clients == nil { // a listener that passes TLS through asks nobody
		s.ports[in.Port].clients = in.Clients
	}
	s.ports[in.Port].add(in.Hostname, l)
	return nil
}

// add adds a listener, unless there is one with the same host name.
func (p *securePort) add(hostname string, l *secureListener) {
	if hostname == "" {
		if p.any == nil {
			p.any = l
		}
		return
	}
	at := p.exact
	if parent, wildcard := strings.CutPrefix(hostname, "*."); wildcard {
		at, hostname = p.wildcard, parent
	}
	if at[hostname] == nil {
		at[hostname] = l
	}
}

// find returns the listener for a name in lower case, or nil.
func (p *securePort) find(name string) *secureListener {
	if p == nil {
		return nil
	}
	if l := p.exact[name]; l != nil {
		return l
	}
	for rest := name; ; {
		_, parent, found := strings.Cut(rest, ".")
		if !found {
			return p.any
		}
		if l := p.wildcard[parent]; l != nil {
			return l
		}
		rest = parent
	}
}

// ofListener returns the certificate of the listener that a client asks for, or nil.
func (s *certificateSet) ofListener(hello *tls.ClientHelloInfo, name string) *tls.Certificate {
	l := s.ports[portOfConn(hello.Conn)].find(name)
	if l == nil || len(l.certificates) == 0 {
		return nil
	}
	if len(l.certificates) > 1 {
		for _, certificate := range l.certificates {
			if hello.SupportsCertificate(certificate) == nil {
				return certificate
			}
		}
	}
	return l.certificates[0]
}

// portOfConn returns the port of the gateway to which a client has connected.
func portOfConn(conn net.Conn) int32 {
	if client, ok := conn.(*clientConn); ok {
		return client.port
	}
	return 0
}
