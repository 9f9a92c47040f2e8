//go:build apitest

package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/authority"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// greet asks for the greeting of the backend behind a port. With a configuration it speaks TLS.
func greet(port int32, with *tls.Config) string {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), 5*time.Second)
	if err != nil {
		return "closed"
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if with != nil {
		conn = tls.Client(conn, with)
	}
	if _, err := io.WriteString(conn, "ping\n"); err != nil {
		return "refused"
	}
	buffer := make([]byte, 64)
	n, _ := conn.Read(buffer)
	if n == 0 {
		return "refused"
	}
	return strings.TrimSpace(strings.SplitN(string(buffer[:n]), "\n", 2)[0])
}

func (r *running) greets(port int32, with *tls.Config, want string) {
	r.t.Helper()
	environment.Eventually(r.t, func() error {
		if got := greet(port, with); got != want {
			return fmt.Errorf("port %d: got %q, want %q", port, got, want)
		}
		return nil
	})
}

// greeter is a backend that sends its name first, with TLS if there is a configuration.
func (c *cluster) greeter(t *testing.T, name string, with *tls.Config) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ownAddress(t), "0"))
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
			go func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				if with != nil {
					conn = tls.Server(conn, with)
				}
				_, _ = io.WriteString(conn, name+"\n")
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	at := listener.Addr().(*net.TCPAddr)
	c.service(name)
	c.endpoints(name, backend{ip: at.IP.String(), port: at.Port})
}

// Ports open and close, and certificates change, while the gateway runs. Who asks for another name gets nowhere, and not to routes.
func TestStreamsOfAnAPIGateway(t *testing.T) {
	c := newCluster(t, "own")
	c.allowConfigMaps("backends")
	backends := authority.New(t, "backends")
	server := func(name string) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{*backends.Issue(t, x509.Certificate{DNSNames: []string{name}})}}
	}
	c.greeter(t, "plain", nil)
	c.greeter(t, "passed", server("passed.test"))
	c.greeter(t, "secure", server("secure.internal"))
	c.configMap("backends", map[string]string{"ca.crt": string(backends.PEM())})
	front := newCertificate(t, "ended.test")
	trust := func(name string) *tls.Config { return &tls.Config{ServerName: name, InsecureSkipVerify: true} }
	verified := func(name string) *tls.Config { return &tls.Config{ServerName: name, RootCAs: backends.Pool()} }
	one, two, three := int32(environment.FreePort(t)), int32(environment.FreePort(t)), int32(environment.FreePort(t))

	g := c.spec(`routes: [{name: web, directResponse: {statusCode: 200, body: web}}]`)
	r := c.run()
	r.serves(g)
	spec := fmt.Sprintf(`
routes: [{name: web, directResponse: {statusCode: 200, body: web}}]
backendPolicies: [{name: secure, port: 80, tls: {hostname: secure.internal, caCertificates: [{name: backends}]}}]
streams:
- {name: tcp, port: %d, protocol: TCP, backends: [{name: plain, port: 80}]}
- {name: passed, port: %d, protocol: TLS, hostnames: [passed.test], backends: [{name: passed, port: 80}]}
- {name: ended, port: %d, protocol: TLS, hostnames: [ended.test], tlsMode: Terminate, certificateRefs: [{name: own}], backends: [{name: plain, port: 80}]}
- {name: both, port: %d, protocol: TCP, backends: [{name: secure, port: 80}]}`, one, two, two, three)
	g = c.spec(spec)
	r.serves(g, `SecretNotFound: Secret "own" does not exist`)
	r.greets(one, nil, "plain")
	r.greets(two, verified("passed.test"), "passed")
	r.greets(two, trust("ended.test"), "refused")
	c.secret("own", front.data)
	r.serves(g)
	r.greets(two, trust("ended.test"), "plain")
	r.greets(three, nil, "secure")
	for _, name := range []string{"other.test", "web.test", ""} {
		if got := greet(two, trust(name)); got != "refused" {
			t.Errorf("%q gets to %q", name, got)
		}
	}
	if got := greet(two, nil); got != "refused" {
		t.Errorf("without TLS it gets to %q", got)
	}
	r.answers("/", "web")

	// A policy without its authorities keeps connections from the backend, and others go on.
	c.configMap("backends", map[string]string{"ca.crt": "x"})
	r.serves(g, "InvalidCACertificates: tls.caCertificates[0]", "InvalidCACertificates: backends: port 80 of Service")
	r.greets(three, nil, "refused")
	r.greets(two, verified("passed.test"), "passed")

	held, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", one))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	_ = held.SetDeadline(time.Now().Add(10 * time.Second))
	buffer := make([]byte, 6)
	if _, err := io.ReadFull(held, buffer); err != nil || string(buffer) != "plain\n" {
		t.Fatalf("%q %v", buffer, err)
	}
	g = c.spec(`routes: [{name: web, directResponse: {statusCode: 200, body: web}}]`)
	r.serves(g)
	r.greets(one, nil, "closed")
	r.greets(two, verified("passed.test"), "closed")
	if _, err := io.WriteString(held, "still here\n"); err != nil {
		t.Errorf("an open connection was cut: %v", err)
	}
	_ = held.Close()

	// A port that somebody else has is told, and opened when it is free.
	taken, err := net.Listen("tcp", fmt.Sprintf(":%d", one))
	if err != nil {
		t.Fatal(err)
	}
	g = c.spec(fmt.Sprintf(`streams: [{name: tcp, port: %d, protocol: TCP, backends: [{name: plain, port: 80}]}]`, one))
	r.serves(g, "PortUnavailable: port: ")
	_ = taken.Close()
	r.serves(g)
	r.greets(one, nil, "plain")
}
