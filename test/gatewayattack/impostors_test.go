package gatewayattack

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// impostor is an endpoint that is not, or does not prove to be, what the policy of its backend asks for.
type impostor struct {
	what string
	// certificate is what it shows. Nil: it speaks HTTP without TLS, and answers before it was asked.
	certificate *tls.Certificate
	// newest is the newest version of TLS that it speaks. 0: any.
	newest uint16

	mu sync.Mutex
	// requests is what it got as an application, plain what it got before or without TLS.
	requests, plain bytes.Buffer
}

const impostorAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nimpostor"

// listen serves it on loopback, and returns its address.
func (i *impostor) listen(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { i.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	return listener.Addr().String()
}

func (i *impostor) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	into := &i.plain
	if i.certificate != nil {
		secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*i.certificate}, MinVersion: tls.VersionTLS10, MaxVersion: i.newest}) // an old server
		if secure.Handshake() != nil {
			return
		}
		conn, into = secure, &i.requests
	} else {
		_, _ = io.WriteString(conn, impostorAnswer)
	}
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		i.mu.Lock()
		into.Write(buffer[:n])
		i.mu.Unlock()
		if n > 0 {
			_, _ = io.WriteString(conn, impostorAnswer)
		}
		if err != nil {
			return
		}
	}
}

// What was meant for a backend that proves who it is goes to nobody else: not a byte of a request, and no answer of an impostor
// gets to a client. The right one, and one for which there are no authorities, show that the test would notice.
func TestNoImpostorGetsARequest(t *testing.T) {
	ours, theirs := authority.New(t, "ours"), authority.New(t, "theirs")
	of := func(by *authority.Authority, template x509.Certificate) *impostor {
		return &impostor{certificate: by.Issue(t, template)}
	}
	names := []string{"pay.internal"}
	day := 24 * time.Hour
	impostors := []*impostor{
		{what: "without TLS"},
		of(ours, x509.Certificate{DNSNames: []string{"pay.internal.evil.test", "xpay.internal", "*.pay.internal", "internal"}}).called("another name"),
		of(theirs, x509.Certificate{DNSNames: names}).called("another authority"),
		of(authority.New(t, "pay.internal"), x509.Certificate{DNSNames: names}).called("an authority of its name"),
		of(ours, x509.Certificate{DNSNames: names, NotBefore: time.Now().Add(-2 * day), NotAfter: time.Now().Add(-day)}).called("expired"),
		of(ours, x509.Certificate{DNSNames: names, NotBefore: time.Now().Add(day), NotAfter: time.Now().Add(2 * day)}).called("not valid yet"),
		of(ours, x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}).called("for clients only"),
		{what: "TLS 1.1", certificate: ours.Issue(t, x509.Certificate{DNSNames: names}), newest: tls.VersionTLS11},
	}
	right := of(ours, x509.Certificate{DNSNames: names}).called("right")
	gateway := startInFrontOf(t, append(impostors, right), ours.PEM())
	for _, backend := range impostors {
		t.Run(backend.what, func(t *testing.T) {
			for _, protocol := range impostorProtocols {
				for _, way := range []string{"pay", "alternative", "asked"} {
					if code, body := gateway.ask(t, backend, protocol, way); code < 500 || strings.Contains(body, "impostor") {
						t.Errorf("%s, %s: the client got %d %q", protocol, way, code, body)
					}
				}
			}
			backend.mu.Lock()
			defer backend.mu.Unlock()
			if backend.requests.Len() > 0 {
				t.Errorf("it got %q", backend.requests.String())
			}
			if got := backend.plain.Bytes(); len(got) > 0 && !bytes.HasPrefix(got, []byte{0x16, 3}) || bytes.Contains(got, []byte("GET")) {
				t.Errorf("without TLS it got %q", got)
			}
		})
	}
	for _, way := range []string{"pay", "alternative"} {
		if code, body := gateway.ask(t, right, "HTTP1", way); code != http.StatusOK || body != "impostor" {
			t.Errorf("the right one, %s: %d %q", way, code, body)
		}
	}
	if code, _ := gateway.ask(t, right, "HTTP1", "nobody"); code != http.StatusInternalServerError && code != http.StatusServiceUnavailable {
		t.Errorf("without authorities: %d", code)
	}
}

func (i *impostor) called(what string) *impostor {
	i.what = what
	return i
}

var impostorProtocols = []string{"HTTP1", "H2C", "GRPC"}

// inFront is a gateway in front of impostors.
type inFront struct{ address string }

// host is where a backend is asked in a way, by a protocol.
func (i *impostor) host(protocol, way string) string {
	return strings.ToLower(strings.ReplaceAll(i.what, " ", "-") + "." + protocol + "." + way + ".test")
}

// startInFrontOf runs the gateway with a Service for each backend, protocol and way.
func startInFrontOf(t *testing.T, backends []*impostor, authorities []byte) *inFront {
	t.Helper()
	var spec struct{ routes, policies, backends strings.Builder }
	for n, backend := range backends {
		address := backend.listen(t)
		for k, protocol := range impostorProtocols {
			for way, tls := range map[string]string{
				"pay":         "hostname: pay.internal, caCertificates: [{name: ours}]",
				"alternative": "hostname: other.internal, subjectAltNames: [pay.internal], caCertificates: [{name: ours}]",
				"asked":       "hostname: pay.internal, caCertificates: [{name: ours}]",
				"nobody":      "hostname: pay.internal, caCertificates: [{name: none}]",
			} {
				service := fmt.Sprintf("b%d-%d-%s", n, k, way)
				answer := fmt.Sprintf("backendService: {name: %s, port: 443}", service)
				if way == "asked" {
					answer = fmt.Sprintf("directResponse: {statusCode: 200}, auth: {external: {backendService: {name: %s, port: 443}}}", service)
				}
				fmt.Fprintf(&spec.routes, "    - {host: %s, %s}\n", backend.host(protocol, way), answer)
				fmt.Fprintf(&spec.policies, "    - {name: %s, port: 443, protocol: %s, tls: {%s}}\n", service, protocol, tls)
				fmt.Fprintf(&spec.backends, "  %q: {addresses: [%q]}\n", service+":443", address)
			}
		}
	}
	config := filepath.Join(t.TempDir(), "gateway.yaml")
	text := fmt.Sprintf("apiVersion: slipway.dev/v1alpha1\nkind: APIGateway\nmetadata: {name: attacked}\nspec:\n  routes:\n%s  backendPolicies:\n%sbackends:\n%sconfigMaps:\n  ours: {ca.crt: %q}\n...\n",
		&spec.routes, &spec.policies, &spec.backends, authorities)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said := startProcess(t, "slipway-gateway", exec.Command(gatewayBinary, "--config", config, "--http", "127.0.0.1:0", "--https", "", "--admin", "127.0.0.1:0",
		"--access-log=false", "--drain-delay", "0s", "--drain-timeout", "1s"))
	var at struct{ HTTP string }
	waitUntil(t, "the gateway serves", func() bool {
		for line := range strings.Lines(said.String()) {
			if strings.Contains(line, `"msg":"listening"`) && json.Unmarshal([]byte(line), &at) != nil {
				t.Fatal(line)
			}
		}
		return strings.Contains(said.String(), `"msg":"serving"`)
	})
	return &inFront{at.HTTP}
}

// ask sends a request for a backend.
func (g *inFront) ask(t *testing.T, backend *impostor, protocol, way string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+g.address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host, request.Close = backend.host(protocol, way), true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(got)
}
