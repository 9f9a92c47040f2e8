//go:build apitest

package gateway

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/testing/authority"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// streamBackend is a Service whose endpoint says its name and sends back what it gets, by TCP and by UDP. With an authority it
// speaks TLS.
func (c *site) streamBackend(t *testing.T, name string, with *authority.Authority) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ownAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	at := listener.Addr().(*net.TCPAddr)
	packets, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Port: at.Port})
	if err != nil {
		t.Fatal(err)
	}
	if with != nil {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*with.Issue(t, x509.Certificate{DNSNames: []string{"a.example.com"}})}})
	}
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, name+"\n")
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		buffer := make([]byte, 1<<10)
		for {
			n, from, err := packets.ReadFromUDP(buffer)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = packets.WriteToUDP([]byte(name+" "+string(buffer[:n])), from)
			}
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); _ = packets.Close(); <-done; <-done })
	c.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Name: "tcp", Port: 80, Protocol: corev1.ProtocolTCP}, {Name: "udp", Port: 80, Protocol: corev1.ProtocolUDP},
	}}})
	port := int32(at.Port)
	c.create(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.IP.String()}}},
		Ports: []discoveryv1.EndpointPort{
			{Name: new("tcp"), Port: &port, Protocol: new(corev1.ProtocolTCP)}, {Name: new("udp"), Port: &port, Protocol: new(corev1.ProtocolUDP)},
		},
	})
}

// firstLine is what a connection says first, or why it says nothing.
func firstLine(port int, config *tls.Config) string {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return "closed"
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if config != nil {
		conn = tls.Client(conn, config)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(line)
}

// answerTo is what comes back for a datagram, or why nothing does.
func answerTo(port int, text string) string {
	conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
	buffer := make([]byte, 1<<10)
	if _, err := io.WriteString(conn, text); err != nil {
		return err.Error()
	}
	n, err := conn.Read(buffer)
	if err != nil {
		return "nothing"
	}
	return string(buffer[:n])
}

func expect(t *testing.T, what, want string, get func() string) {
	t.Helper()
	environment.Eventually(t, func() error {
		if got := get(); got != want {
			return fmt.Errorf("%s: got %q, want %q", what, got, want)
		}
		return nil
	})
}

func TestRoutesForTLSAndTCPAndUDPAreServed(t *testing.T) {
	ca := authority.New(t, "backends")
	c := newSite(t)
	c.streamBackend(t, "secure", ca)
	c.streamBackend(t, "plain", nil)
	through, raw := environment.FreePort(t), environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(
		fmt.Sprintf("{name: through, port: %d, protocol: TLS, tls: {mode: Passthrough}}", through),
		fmt.Sprintf("{name: tcp, port: %d, protocol: TCP}", raw), fmt.Sprintf("{name: udp, port: %d, protocol: UDP}", raw)))
	r := c.runGateway()
	r.says(nil, "through", "tcp", "udp")
	config := &tls.Config{RootCAs: ca.Pool(), ServerName: "a.example.com"}
	expect(t, "TLS without a route", "EOF", func() string { return firstLine(through, config) })
	expect(t, "TCP without a route", "EOF", func() string { return firstLine(raw, nil) })
	expect(t, "UDP without a route", "nothing", func() string { return answerTo(raw, "x") })

	of := func(kind, name, more, service string) string {
		return routeDigest(c.put(kind, name, `{parentRefs: [{name: edge}], `+more+`rules: [{backendRefs: [{name: `+service+`, port: 80}]}]}`))
	}
	tlsRoute, tcpRoute, udpRoute := of("TLSRoute", "through", `hostnames: ["*.example.com"], `, "secure"), of("TCPRoute", "raw", "", "plain"), of("UDPRoute", "raw", "", "plain")
	r.says([]string{tlsRoute, tcpRoute, udpRoute}, "through", "tcp", "udp")
	expect(t, "TLS", "secure", func() string { return firstLine(through, config) })
	expect(t, "TLS for another name", "EOF", func() string { return firstLine(through, &tls.Config{ServerName: "a.example.org"}) })
	expect(t, "TCP", "plain", func() string { return firstLine(raw, nil) })
	expect(t, "UDP", "plain x", func() string { return answerTo(raw, "x") })

	// Another Service, without a grant.
	other := c.elsewhere(t)
	other.streamBackend(t, "theirs", nil)
	theirs := `{parentRefs: [{name: edge}], rules: [{backendRefs: [{name: theirs, namespace: ` + other.namespace + `, port: 80}]}]}`
	tcpRoute, udpRoute = routeDigest(c.put("TCPRoute", "raw", theirs)), routeDigest(c.put("UDPRoute", "raw", theirs))
	r.says([]string{tlsRoute, tcpRoute, udpRoute}, "through", "tcp", "udp")
	expect(t, "TCP without a grant", "EOF", func() string { return firstLine(raw, nil) })
	expect(t, "UDP without a grant", "nothing", func() string { return answerTo(raw, "x") })
	other.put("ReferenceGrant", "grant", `{from: [{group: gateway.networking.k8s.io, kind: TCPRoute, namespace: `+c.namespace+`}], to: [{group: "", kind: Service}]}`)
	expect(t, "TCP with a grant", "theirs", func() string { return firstLine(raw, nil) })
	expect(t, "UDP with a grant for TCPRoutes", "nothing", func() string { return answerTo(raw, "x") })

	// A port that closes, and one that opens.
	c.put("Gateway", "edge", gatewaySpec(fmt.Sprintf("{name: udp, port: %d, protocol: UDP}", raw)))
	expect(t, "the closed port", "closed", func() string { return firstLine(raw, nil) })
	r.says([]string{udpRoute}, "udp")
}
