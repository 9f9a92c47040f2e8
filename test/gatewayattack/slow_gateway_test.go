package gatewayattack

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// running is the gateway's program with a file.
type running struct {
	// plain is where it serves HTTP, and process its id.
	plain   string
	process int
}

// runWith runs the gateway with a file, without HTTPS.
func runWith(t testing.TB, text string) *running {
	t.Helper()
	config := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(gatewayBinary, "--config", config, "--http", "127.0.0.1:0", "--https", "", "--admin", "127.0.0.1:0",
		"--access-log=false", "--drain-delay", "0s", "--drain-timeout", "1s")
	said := startProcess(t, "slipway-gateway", command)
	var at struct{ HTTP string }
	waitUntil(t, "the gateway serves", func() bool {
		for line := range strings.Lines(said.String()) {
			if strings.Contains(line, `"msg":"listening"`) && json.Unmarshal([]byte(line), &at) != nil {
				t.Fatal(line)
			}
		}
		return strings.Contains(said.String(), `"msg":"serving"`)
	})
	return &running{plain: at.HTTP, process: command.Process.Pid}
}

// startSlowRig runs the backends, and the gateway in front of them.
func startSlowRig(t testing.TB) *slowRig {
	t.Helper()
	by := authority.New(t, "backends")
	rig := &slowRig{backends: map[string]*slowBackend{}}
	var routes, policies, addresses strings.Builder
	for _, protocol := range slowProtocols {
		backend := &slowBackend{last: time.Now()}
		rig.backends[protocol] = backend
		to := fmt.Sprintf("backendService: {name: %s, port: 80}, retries: {attempts: 0}", protocol)
		for _, route := range []string{
			"path: /", "path: /packed, compression: {minBytes: 1}", "path: /kept, cache: {}",
			fmt.Sprintf("path: /mirrored, mirrors: [{backendService: {name: %s, port: 80}}]", protocol),
		} {
			fmt.Fprintf(&routes, "    - {host: %s.test, %s, %s}\n", protocol, route, to)
		}
		appProtocol := ""
		if protocol != "http1" {
			appProtocol = "kubernetes.io/h2c"
		}
		fmt.Fprintf(&addresses, "  %q: {addresses: [%q], appProtocol: %q}\n", protocol+":80", backend.listen(t, protocol, by), appProtocol)
		if protocol == "tls" {
			fmt.Fprintf(&policies, "    - {name: tls, port: 80, tls: {hostname: %s, caCertificates: [{name: ours}]}}\n", nameOfBackends)
		}
	}
	rig.running = runWith(t, fmt.Sprintf("apiVersion: slipway.dev/v1alpha1\nkind: APIGateway\nmetadata: {name: attacked}\nspec:\n  routes:\n%s  backendPolicies:\n%sbackends:\n%sconfigMaps:\n  ours: {ca.crt: %q}\n...\n",
		&routes, &policies, &addresses, by.PEM()))
	return rig
}

// listen serves with a protocol on loopback, and returns the address.
func (b *slowBackend) listen(t testing.TB, protocol string, by *authority.Authority) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener = &modest{listener}
	server := &http.Server{
		Handler: b, Protocols: new(http.Protocols), ReadHeaderTimeout: 10 * time.Second,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000}, // so that all come on one connection
	}
	address := listener.Addr().String()
	switch protocol {
	case "h2c":
		server.Protocols.SetUnencryptedHTTP2(true)
	case "tls":
		server.Protocols.SetHTTP2(true)
		certificate := by.Issue(t, x509.Certificate{DNSNames: []string{nameOfBackends}})
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{http2.NextProtoTLS}})
	default:
		server.Protocols.SetHTTP1(true)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return address
}

// modest is a listener whose connections leave the kernel some memory: what waits to be sent by the backends must not use up
// what this machine has for all sockets.
type modest struct{ net.Listener }

func (m *modest) Accept() (net.Conn, error) {
	conn, err := m.Listener.Accept()
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetWriteBuffer(128 << 10)
	}
	return conn, err
}

// What a client does not take costs little, and keeps nobody waiting, whatever protocol the backend speaks.
func TestWhoTakesNothingCostsLittle(t *testing.T) {
	slowTakers(t, fewSlowTakers)
}

// slowTakers plays ways, each with a gateway of its own, and returns the rows of a table.
func slowTakers(t *testing.T, takers []slowTaker) []string {
	t.Helper()
	var rows []string
	for _, taker := range takers {
		protocols := taker.backends
		if protocols == nil {
			protocols = slowProtocols
		}
		for _, protocol := range protocols {
			t.Run(taker.name+"/"+protocol, func(t *testing.T) {
				row := startSlowRig(t).play(t, taker, protocol)
				t.Log(row)
				rows = append(rows, row)
			})
		}
	}
	return rows
}
