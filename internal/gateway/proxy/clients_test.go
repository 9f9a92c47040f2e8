package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// checkedGateway is a gateway with a TLS port whose clients may have to prove who they are.
type checkedGateway struct {
	*gateway

	server       *authority.Authority
	certificates *Certificates
	address      string
	served       atomic.Int64 // requests that have reached the backend
}

func startChecked(t *testing.T, check *ClientCheck) *checkedGateway {
	t.Helper()
	g := &checkedGateway{server: authority.New(t, "server"), certificates: &Certificates{}}
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) { g.served.Add(1); _, _ = io.WriteString(w, "ok") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.address = listener.Addr().String()
	g.gateway = startServer(t, Options{}, ServerOptions{HTTPS: listener, HTTPSPort: 443, Certificates: g.certificates}, compile(t, toApp, nil, backend))
	g.check(t, check) // as with every change: certificates first, then the table
	return g
}

// check changes how clients of the port prove who they are.
func (g *checkedGateway) check(t *testing.T, check *ClientCheck) {
	t.Helper()
	of := Certificate{Certificate: *g.server.Issue(t, x509.Certificate{DNSNames: []string{"a.test"}})}
	if err := g.certificates.SetListeners([]SecureListener{{Port: 443, Certificates: []Certificate{of}, Clients: check}}); err != nil {
		t.Fatal(err)
	}
	if g.gateway != nil {
		g.handler.Set(g.handler.current.Load().Config)
	}
}

// client returns a client that shows a certificate, and keeps its connections and sessions.
func (g *checkedGateway) client(t *testing.T, shows *tls.Certificate, http2 bool) *http.Client {
	config := &tls.Config{RootCAs: g.server.Pool(), ServerName: "a.test", ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if shows != nil {
		// Also where the server names other authorities.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return shows, nil }
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// ask sends a request. The status is 0 if the client was not let in.
func (g *checkedGateway) ask(client *http.Client) int {
	request, err := http.NewRequest(http.MethodGet, "https://"+g.address+"/", nil)
	if err != nil {
		return -1
	}
	request.Host = "a.test"
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// clientCertificates are those that clients try.
func clientCertificates(t *testing.T, ca, other *authority.Authority) map[string]*tls.Certificate {
	use := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return map[string]*tls.Certificate{
		"valid":           ca.Issue(t, x509.Certificate{ExtKeyUsage: use}),
		"none":            nil,
		"of another":      other.Issue(t, x509.Certificate{ExtKeyUsage: use}),
		"expired":         ca.Issue(t, x509.Certificate{ExtKeyUsage: use, NotAfter: time.Now().Add(-time.Minute)}),
		"not yet valid":   ca.Issue(t, x509.Certificate{ExtKeyUsage: use, NotBefore: time.Now().Add(time.Hour), NotAfter: time.Now().Add(2 * time.Hour)}),
		"for servers":     ca.Issue(t, x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}),
		"signs itself":    authority.New(t, "ca").Issue(t, x509.Certificate{ExtKeyUsage: use}),
		"without a usage": ca.Issue(t, x509.Certificate{}),
	}
}

func TestClientsProveWhoTheyAre(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	valid := map[string]bool{"valid": true, "without a usage": true}
	for name, tc := range map[string]struct {
		check *ClientCheck
		all   bool
	}{
		"not checked": {all: true},
		"checked":     {check: &ClientCheck{Identity: "a", Roots: ca.Pool()}},
		"optional":    {check: &ClientCheck{Identity: "a", Roots: ca.Pool(), Optional: true}, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := startChecked(t, tc.check)
			for kind, shows := range clientCertificates(t, ca, other) {
				for _, http2 := range []bool{false, true} {
					wanted := 0
					if tc.all || valid[kind] {
						wanted = http.StatusOK
					}
					before := g.served.Load()
					if got := g.ask(g.client(t, shows, http2)); got != wanted {
						t.Errorf("%s, HTTP/2 %v: status %d, want %d", kind, http2, got, wanted)
					}
					if served := g.served.Load() - before; (served > 0) != (wanted == http.StatusOK) {
						t.Errorf("%s, HTTP/2 %v: %d requests have reached the backend", kind, http2, served)
					}
				}
			}
		})
	}
}

// Who was let in by other rules is not let in by the new ones: neither on an open connection, nor by continuing a session.
func TestAChangedCheckHoldsForOpenConnections(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	of, ofOther := clientCertificates(t, ca, other)["valid"], clientCertificates(t, other, ca)["valid"]
	next := &ClientCheck{Identity: "next", Roots: other.Pool()}
	for name, before := range map[string]*ClientCheck{
		"not checked":       nil,
		"optional":          {Identity: "optional", Roots: other.Pool(), Optional: true},
		"another authority": {Identity: "before", Roots: ca.Pool()},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				g := startChecked(t, before)
				client := g.client(t, of, http2)
				want(t, "before", g.ask(client), http.StatusOK)
				g.check(t, next)
				want(t, "on the open connection", g.ask(client), http.StatusMisdirectedRequest)
				want(t, "on another connection", g.ask(client), 0)
				want(t, "requests that have reached the backend", g.served.Load(), int64(1))
				right := g.client(t, ofOther, http2)
				want(t, "with the right certificate", g.ask(right), http.StatusOK)
				want(t, "again", g.ask(right), http.StatusOK)
				g.check(t, &ClientCheck{Identity: "next", Roots: other.Pool()})
				want(t, "after a change of something else", g.ask(right), http.StatusOK)
			})
		}
	}
}

// Certificates change a moment before the table. A table whose clients had to prove who they are serves nobody else until it goes.
func TestATableKeepsTheCheckWithWhichItCame(t *testing.T) {
	ca := authority.New(t, "ca")
	g := startChecked(t, &ClientCheck{Identity: "a", Roots: ca.Pool()})
	of := Certificate{Certificate: *g.server.Issue(t, x509.Certificate{DNSNames: []string{"a.test"}})}
	if err := g.certificates.SetListeners([]SecureListener{{Port: 443, Certificates: []Certificate{of}}}); err != nil {
		t.Fatal(err)
	}
	anybody := g.client(t, nil, false)
	want(t, "before the next table", g.ask(anybody), http.StatusMisdirectedRequest)
	want(t, "requests that have reached the backend", g.served.Load(), int64(0))
	g.handler.Set(g.handler.current.Load().Config)
	want(t, "with it", g.ask(anybody), http.StatusOK)
}

func TestARequestWithoutHostDoesNotEscapeTheCheck(t *testing.T) {
	g := startChecked(t, nil)
	conn, err := tls.Dial("tcp", g.address, &tls.Config{RootCAs: g.server.Pool(), ServerName: "a.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	g.check(t, &ClientCheck{Identity: "a", Roots: authority.New(t, "ca").Pool()})
	_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	want(t, "status", response.StatusCode, http.StatusMisdirectedRequest)
}
