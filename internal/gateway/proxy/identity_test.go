package proxy

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// startIdentified is a gateway with one address for HTTP and one for HTTPS, whose backend says which header fields it got.
func startIdentified(t *testing.T, check *ClientCheck) (g *gateway, certificates *Certificates, server *authority.Authority, secure string) {
	t.Helper()
	server, certificates = authority.New(t, "server"), &Certificates{}
	of := Certificate{Certificate: *server.Issue(t, x509.Certificate{DNSNames: []string{"a.test"}})}
	if err := certificates.SetChecked([]Certificate{of}, check); err != nil {
		t.Fatal(err)
	}
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Cache-Control", "public, max-age=60")
		for _, all := range []http.Header{r.Header, r.Trailer} {
			for name, values := range all {
				if strings.Contains(strings.ToLower(name), "client") {
					_, _ = fmt.Fprintf(w, "%s=%s\n", name, strings.Join(values, "|"))
				}
			}
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g = startServer(t, Options{}, ServerOptions{HTTPS: listener, HTTPSPort: 8443, Certificates: certificates}, compile(t, toApp, nil, backend))
	current := g.handler.current.Load().Config
	current.ClientHeaders = ClientHeaders{Fingerprint: "X-Client-Fingerprint", Name: "X-Client-Name"}
	g.handler.Set(current)
	return g, certificates, server, listener.Addr().String()
}

// lies are ways to say that one is somebody else.
const lies = "X-Client-Name: DNS:admin\r\nx-client-name: DNS:admin\r\nX_Client_Name: DNS:admin\r\nX-Client_Name: DNS:admin\r\nX-Client-Fingerprint: ff\r\nX_CLIENT_FINGERPRINT: ff\r\n"

func TestBackendsAreToldWhoHasShownACertificateAndNothingElse(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	shown := clientCertificates(t, ca, other)
	uri := &url.URL{Scheme: "spiffe", Host: "prod", Path: "/a,DNS:admin"}
	shown["valid"] = ca.Issue(t, x509.Certificate{URIs: []*url.URL{uri}, DNSNames: []string{"a.internal"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	sum := sha256.Sum256(shown["valid"].Certificate[0])
	told := map[string]string{
		"valid":           "X-Client-Fingerprint=" + hex.EncodeToString(sum[:]) + " X-Client-Name=URI:spiffe://prod/a%2CDNS:admin,DNS:a.internal",
		"without a usage": "",
	}
	_, _, server, secure := startIdentified(t, &ClientCheck{Identity: "a", Roots: ca.Pool(), Optional: true})
	for kind, certificate := range shown {
		conn, err := tls.Dial("tcp", secure, &tls.Config{
			RootCAs: server.Pool(), ServerName: "a.test",
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if certificate == nil {
					return &tls.Certificate{}, nil
				}
				return certificate, nil
			},
		})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: X-Client-Name, x-client-fingerprint\r\n"+lies+
			"Transfer-Encoding: chunked\r\nTrailer: X-Client-Name\r\n\r\n0\r\nX-Client-Name: DNS:admin\r\nX_Client_Name: DNS:admin\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		_ = conn.Close()
		got := strings.Fields(string(body))
		wanted := strings.Fields(told[kind])
		if kind == "without a usage" {
			if len(got) != 1 || !strings.HasPrefix(got[0], "X-Client-Fingerprint=") {
				t.Errorf("%s: the backend is told %q", kind, got)
			}
			continue
		}
		if len(got) != len(wanted) {
			t.Errorf("%s: the backend is told %q, want %q", kind, got, wanted)
		}
		for _, want := range wanted {
			if !strings.Contains(string(body), want+"\n") {
				t.Errorf("%s: the backend is told %q, want %q", kind, got, want)
			}
		}
	}
}

func TestRequestsWithoutTLSAreRefusedWhereCertificatesAreRequired(t *testing.T) {
	ca := authority.New(t, "ca")
	g, certificates, server, secure := startIdentified(t, &ClientCheck{Identity: "a", Roots: ca.Pool()})
	if got, _ := g.get("/"); got.StatusCode != http.StatusForbidden {
		t.Errorf("without TLS: %d", got.StatusCode)
	}
	client := func(certificate *tls.Certificate) int {
		config := &tls.Config{RootCAs: server.Pool(), ServerName: "a.test"}
		if certificate != nil {
			config.Certificates = []tls.Certificate{*certificate}
		}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		request, _ := http.NewRequest(http.MethodGet, "https://"+secure+"/", nil)
		request.Host = "a.test"
		response, err := transport.RoundTrip(request)
		if err != nil {
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	valid := ca.Issue(t, x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if got := client(valid); got != http.StatusOK {
		t.Errorf("with a certificate: %d", got)
	}
	if got := client(nil); got != 0 {
		t.Errorf("without a certificate: %d", got)
	}
	if err := certificates.SetChecked(nil, &ClientCheck{Identity: "b", Roots: ca.Pool(), Optional: true}); err != nil {
		t.Fatal(err)
	}
	g.handler.Set(g.handler.current.Load().Config)
	if got, _ := g.get("/"); got.StatusCode != http.StatusOK {
		t.Errorf("without TLS, where that is allowed: %d", got.StatusCode)
	}
}

// An identity counts only as long as it would be found again: not after the authority has gone.
func TestAnIdentityIsNotToldAfterItsAuthorityHasGone(t *testing.T) {
	ca := authority.New(t, "ca")
	g, certificates, server, secure := startIdentified(t, &ClientCheck{Identity: "a", Roots: ca.Pool(), Optional: true})
	_ = g
	config := &tls.Config{RootCAs: server.Pool(), ServerName: "a.test", Certificates: []tls.Certificate{*ca.Issue(t, x509.Certificate{DNSNames: []string{"x"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})}}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	ask := func() string {
		request, _ := http.NewRequest(http.MethodGet, "https://"+secure+"/", nil)
		request.Host = "a.test"
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return string(body)
	}
	if got := ask(); !strings.Contains(got, "DNS:x") {
		t.Fatalf("told %q", got)
	}
	of := Certificate{Certificate: *server.Issue(t, x509.Certificate{DNSNames: []string{"a.test"}})}
	if err := certificates.SetChecked([]Certificate{of}, &ClientCheck{Identity: "b", Roots: authority.New(t, "next").Pool(), Optional: true}); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != "" {
		t.Errorf("it is still told %q", got)
	}
}

func FuzzAlternativeNames(f *testing.F) {
	f.Add("a.test", "admin.test", "spiffe://prod/a,DNS:b")
	f.Add("a,DNS:b", "", "%2C")
	f.Fuzz(func(t *testing.T, one, two, three string) {
		text := alternativeNames(&x509.Certificate{DNSNames: []string{one, two, three}})
		if text == "" {
			return
		}
		read := strings.Split(text, ",")
		if len(read) != 3 {
			t.Fatalf("%q is read as %d names", text, len(read))
		}
		for i, want := range []string{one, two, three} {
			got, err := url.PathUnescape(strings.TrimPrefix(read[i], "DNS:"))
			if err != nil || got != want {
				t.Errorf("%q is read as %q, %v", want, got, err)
			}
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			t.Errorf("%q cannot be a field", text)
		}
	})
}
