package upstream

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// secureServer answers with the protocol, the server name and the name of the client's certificate.
func secureServer(t testing.TB, config *tls.Config, http2 bool) (address string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := r.Proto + " for " + r.TLS.ServerName
		if len(r.TLS.PeerCertificates) > 0 {
			text += " from " + r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, text)
	}))
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = config
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func secureService(t testing.TB, with *TLS, addresses ...string) *Service {
	s := NewService(Options{}, with)
	s.Set(addresses)
	t.Cleanup(func() { s.Set(nil) })
	return s
}

func TestTLSToTheEndpoints(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	spiffe, _ := url.Parse("spiffe://cluster.local/ns/shop/sa/app")
	server := x509.Certificate{DNSNames: []string{"app.example.com", "*.wild.example.com"}, URIs: []*url.URL{spiffe}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	address := secureServer(t, &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, server)}}, true)
	expired := server
	expired.NotAfter = time.Now().Add(-time.Minute)
	old := secureServer(t, &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, expired)}}, true)
	client := server
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	wrongUse := secureServer(t, &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, client)}}, true)
	roots := ca.Pool()

	for name, tc := range map[string]struct {
		with    TLS
		address string
		refused bool
	}{
		"the name of the certificate":               {with: TLS{ServerName: "app.example.com", Roots: roots}},
		"a name below a wildcard":                   {with: TLS{ServerName: "a.wild.example.com", Roots: roots}},
		"another name":                              {with: TLS{ServerName: "other.example.com", Roots: roots}, refused: true},
		"another authority":                         {with: TLS{ServerName: "app.example.com", Roots: other.Pool()}, refused: true},
		"the authorities of the system":             {with: TLS{ServerName: "app.example.com"}, refused: true},
		"no authority at all":                       {with: TLS{ServerName: "app.example.com", Roots: x509.NewCertPool()}, refused: true},
		"an expired certificate":                    {with: TLS{ServerName: "app.example.com", Roots: roots}, address: old, refused: true},
		"a certificate of clients":                  {with: TLS{ServerName: "app.example.com", Roots: roots}, address: wrongUse, refused: true},
		"an alternative name":                       {with: TLS{ServerName: "any.example.com", Roots: roots, Names: []string{"x.example.com", "app.example.com"}}},
		"an alternative URI":                        {with: TLS{ServerName: "any.example.com", Roots: roots, URIs: []string{spiffe.String()}}},
		"one of names and URIs":                     {with: TLS{ServerName: "any.example.com", Roots: roots, Names: []string{"x.example.com"}, URIs: []string{spiffe.String()}}},
		"an alternative name below a wildcard":      {with: TLS{ServerName: "any.example.com", Roots: roots, Names: []string{"a.wild.example.com"}}},
		"an alternative wildcard":                   {with: TLS{ServerName: "any.example.com", Roots: roots, Names: []string{"*.wild.example.com"}}},
		"a wildcard that covers the certificate":    {with: TLS{ServerName: "any.example.com", Roots: roots, Names: []string{"*.example.com"}}, refused: true},
		"the server name beside other alternatives": {with: TLS{ServerName: "app.example.com", Roots: roots, Names: []string{"x.example.com"}}, refused: true},
		"another URI":                               {with: TLS{ServerName: "app.example.com", Roots: roots, URIs: []string{spiffe.String() + "/x"}}, refused: true},
		"an alternative name, another authority":    {with: TLS{ServerName: "app.example.com", Roots: other.Pool(), Names: []string{"app.example.com"}}, refused: true},
		"an alternative name, expired":              {with: TLS{ServerName: "app.example.com", Roots: roots, Names: []string{"app.example.com"}}, address: old, refused: true},
		"an alternative name, of clients":           {with: TLS{ServerName: "app.example.com", Roots: roots, Names: []string{"app.example.com"}}, address: wrongUse, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.address == "" {
				tc.address = address
			}
			s := secureService(t, &tc.with, tc.address)
			for _, request := range []struct {
				*Request
				proto string
			}{{get(), "HTTP/1.1"}, {getHTTP2(), "HTTP/2.0"}} {
				if tc.refused {
					_, err := s.Do(t.Context(), request.Request)
					wantKind(t, err, Connect)
					continue
				}
				if _, body := fetch(t, s, request.Request); body != request.proto+" for "+tc.with.ServerName {
					t.Errorf("got %q", body)
				}
			}
		})
	}
}

func TestACertificateIsShownToEndpointsThatAsk(t *testing.T) {
	ca := authority.New(t, "ca")
	server := ca.Issue(t, x509.Certificate{DNSNames: []string{"app.example.com"}})
	own := ca.Issue(t, x509.Certificate{Subject: pkix.Name{CommonName: "gateway"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	address := secureServer(t, &tls.Config{
		Certificates: []tls.Certificate{*server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool(),
	}, false)
	with := TLS{ServerName: "app.example.com", Roots: ca.Pool(), Certificate: own}
	if _, body := fetch(t, secureService(t, &with, address), get()); body != "HTTP/1.1 for app.example.com from gateway" {
		t.Errorf("got %q", body)
	}
	with.Certificate = nil
	if _, err := secureService(t, &with, address).Do(t.Context(), get()); err == nil {
		t.Error("an endpoint that wants a certificate has answered without one")
	}
}

func TestAnEndpointWithoutHTTP2IsTold(t *testing.T) {
	ca := authority.New(t, "ca")
	config := &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, x509.Certificate{DNSNames: []string{"app.example.com"}})}}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config) // negotiates no protocol
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
	}()
	s := secureService(t, &TLS{ServerName: "app.example.com", Roots: ca.Pool()}, listener.Addr().String())
	_, err = s.Do(t.Context(), getHTTP2())
	wantKind(t, err, WrongProtocol)
}

func TestConnectionsAreNotSharedByDifferentTLS(t *testing.T) {
	ca := authority.New(t, "ca")
	var connections atomic.Int64
	config := &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, x509.Certificate{DNSNames: []string{"a.example.com", "b.example.com"}})}}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { connections.Add(1); return nil, nil }
	address := secureServer(t, config, false)
	r := NewRegistry(Options{})
	ask := func(with *TLS) string {
		s := r.Service("app:80", with)
		s.Set([]string{address})
		t.Cleanup(func() { s.Set(nil) })
		_, body := fetch(t, s, get())
		return body
	}
	a := &TLS{Identity: "a", ServerName: "a.example.com", Roots: ca.Pool()}
	again := *a
	b := &TLS{Identity: "b", ServerName: "b.example.com", Roots: ca.Pool()}
	if x, y := ask(a), ask(&again); x != y || connections.Load() != 1 {
		t.Errorf("the same TLS: %q, %q, %d connections", x, y, connections.Load())
	}
	if got := ask(b); got != "HTTP/1.1 for b.example.com" {
		t.Errorf("another TLS: %q", got)
	}
	if r.Service("app:80", b) == r.Service("app:80", nil) {
		t.Error("a Service with TLS is used without")
	}
}

// heldConn holds back what is written to it, once it is told to.
type heldConn struct {
	net.Conn

	hold bool
	held []byte
}

// Write sends, or holds back.
func (c *heldConn) Write(p []byte) (int, error) {
	if !c.hold {
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	return len(p), nil
}

// send sends all but the last bytes of what is held back.
func (c *heldConn) send(keep int) {
	_, _ = c.Conn.Write(c.held[:len(c.held)-keep])
	c.held = c.held[len(c.held)-keep:]
}

func TestUnsolicitedBytesOverTLSAreNotTakenForAResponse(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	ca := authority.New(t, "ca")
	config := &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, x509.Certificate{DNSNames: []string{"app.example.com"}})}}
	for name, tc := range map[string]struct {
		records []string
		// late is how many bytes arrive only after the next request, if that comes on the same connection.
		late int
	}{
		"in the same record":                    {records: []string{okResponse + evil}},
		"in a record of the same segment":       {records: []string{okResponse, evil}},
		"in a record that is not yet complete":  {records: []string{okResponse, evil}, late: 10},
		"in a record without its whole header":  {records: []string{okResponse, evil}, late: len(evil) + 17 + 3}, // type and tag of TLS 1.3, part of the header
		"in a record after one without content": {records: []string{okResponse, "", evil}},
	} {
		t.Run(name, func(t *testing.T) {
			b := listen(t, func(p *peer, number int) {
				raw := &heldConn{Conn: p.Conn}
				secure := tls.Server(raw, config)
				p = &peer{Conn: secure, in: bufio.NewReader(secure)}
				for p.head() != "" {
					if number > 1 {
						p.send(okResponse)
						continue
					}
					raw.hold = true
					for _, record := range tc.records {
						p.send(record)
					}
					raw.send(tc.late)
					_ = p.head()
					raw.send(0)
				}
			})
			s := secureService(t, &TLS{ServerName: "app.example.com", Roots: ca.Pool()}, b.address())
			for range 2 {
				if _, body := fetch(t, s, get()); body != "ok" {
					t.Errorf("got %q", body)
				}
			}
		})
	}
}

func TestAConnectionWithTLSIsReused(t *testing.T) {
	ca := authority.New(t, "ca")
	config := &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, x509.Certificate{DNSNames: []string{"app.example.com"}})}}
	long := strings.Repeat("x", 100_000)
	b := listen(t, func(p *peer, _ int) {
		secure := tls.Server(p.Conn, config)
		p = &peer{Conn: secure, in: bufio.NewReader(secure)}
		for p.head() != "" {
			p.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(long), long))
		}
	})
	s := secureService(t, &TLS{ServerName: "app.example.com", Roots: ca.Pool()}, b.address())
	for range 20 {
		if _, body := fetch(t, s, get()); body != long {
			t.Fatalf("got %d bytes", len(body))
		}
	}
	if n := b.accepted.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
