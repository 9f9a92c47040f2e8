package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/dialguard"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/oidc"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// Whoever writes routes names addresses from where the gateway fetches. None of them may be the gateway itself.
func TestNothingIsFetchedFromTheGatewayItself(t *testing.T) {
	var asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	for _, address := range []string{inside.URL, strings.Replace(inside.URL, "127.0.0.1", "localhost", 1)} {
		failed := make(chan error, 10)
		g := start(t, Options{Guard: new(dialguard.Guard), KeysFailing: func(_ string, err error) { failed <- err }},
			fromURL(address+"/revision?standby=true"), serve(t, func(http.ResponseWriter, *http.Request) {}))
		if err := <-failed; !errors.Is(err, dialguard.ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
		response, _ := g.get("/", "Authorization", "Bearer x")
		want(t, address, response.StatusCode, http.StatusServiceUnavailable)
	}
	client := oidc.NewHTTPClient(nil)
	defer client.CloseIdleConnections()
	response, err := client.Post(inside.URL+"/revision?standby=true", "application/x-www-form-urlencoded", http.NoBody)
	if err == nil {
		response.Body.Close()
	}
	if !errors.Is(err, dialguard.ErrRefused) {
		t.Errorf("a request for tokens: %v", err)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the server inside was asked %d times", n)
	}
}

// forbidden are servers at one address and port for TCP and UDP, which tell of whoever comes.
func forbidden(t *testing.T, host string) (address string, reached *atomic.Int64) {
	t.Helper()
	reached = new(atomic.Int64)
	packets, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	address = packets.LocalAddr().String()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(packets.Close(), listener.Close()) })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = conn.Close()
		}
	}()
	go func() {
		buffer := make([]byte, 16)
		for {
			n, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			reached.Add(1)
			_, _ = packets.WriteTo(buffer[:n], from)
		}
	}()
	return address, reached
}

// dials are the ways in which a gateway dials an endpoint that a tenant's Service has. Each returns when that was tried, and fallen
// through or not.
var dials = map[string]func(t *testing.T, options Options, to, open string){
	"a request": func(t *testing.T, options Options, to, _ string) {
		start(t, options, `[{backendService: {name: app, port: 80}}]`, to).get("/")
	},
	"a request over HTTP/2": func(t *testing.T, options Options, to, _ string) { start(t, options, toH2, to).get("/") },
	"a request over TLS": func(t *testing.T, options Options, to, _ string) {
		with := backendTLS(t, model.BackendTLSInput{ServerName: "a.test", Roots: authority.New(t, "ca").PEM()})
		startTable(t, options, withoutMirrors(withTLS(t, to, with))).get("/app")
	},
	"a WebSocket": func(t *testing.T, options Options, to, _ string) {
		start(t, options, toApp, to).get("/", "Connection", "Upgrade", "Upgrade", "websocket")
	},
	"a mirror": func(t *testing.T, options Options, to, open string) {
		g := startTable(t, options, nil)
		g.handler.Set(sticky(t, `[{backendService: {name: app, port: 80}, mirrors: [{backendService: {name: copy, port: 80}}]}]`,
			map[string][]string{"app": {open}, "copy": {to}}))
		g.get("/")
		g.handler.features.mirror.Wait()
	},
	"auth.external": func(t *testing.T, options Options, to, open string) {
		startTable(t, options, compileAsking(t, "", open, to)).get("/")
	},
	"auth.external over gRPC": func(t *testing.T, options Options, to, open string) {
		startTable(t, options, compileAsking(t, ", protocol: GRPC", open, to)).get("/")
	},
	"a health check": func(t *testing.T, options Options, to, _ string) {
		ill := make(chan struct{}, 1)
		options.HealthChanged = func(string, string, error) { ill <- struct{}{} }
		compiled := withCheck(compile(t, toApp, nil, to))
		for _, b := range compiled.Backends {
			b.HealthCheck.Period, b.HealthCheck.Unhealthy = 10*time.Millisecond, 1
		}
		startTable(t, options, compiled)
		<-ill
	},
	"a connection": func(t *testing.T, options Options, endpoint, _ string) {
		_, place := tcpGateway(t, options, map[string][]string{"a": {endpoint}}, to("a")...)
		_, _ = io.ReadAll(dialTCP(t, place.Address))
	},
	"a TLS connection": func(t *testing.T, options Options, to, _ string) {
		g := startStreamsWith(t, options, authority.New(t, "ca"), map[string][]string{"a": {to}})
		_, _ = g.dial("through.test")
	},
	"a datagram": func(t *testing.T, options Options, endpoint, _ string) {
		g := startDatagrams(t, options, map[string][]string{"a": {endpoint}}, to("a")...)
		client := g.client(t)
		_, _ = client.Write([]byte("x"))
		eventually(t, "it was dropped or answered", func() bool { return g.drops(t, "connect") > 0 || hear(t, client, time.Millisecond) != "" })
	},
}

// Whoever may write Services and EndpointSlices names addresses as endpoints. None of them may be where only the pod itself
// listens, nor its admin port, however it is dialed.
func TestNoEndpointOfAServiceIsTheGatewayItself(t *testing.T) {
	open, _ := recording(t)
	for name, dial := range dials {
		t.Run(name, func(t *testing.T) {
			for _, host := range append(ownAddresses(t), "127.0.0.2") {
				address, reached := forbidden(t, host)
				closed := netip.MustParseAddrPort(address)
				for _, allowed := range []bool{false, true} {
					guard := &dialguard.Guard{
						Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Own: func(port uint16) bool { return allowed || port != closed.Port() },
					}
					if allowed && closed.Addr().IsLoopback() {
						guard.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
					}
					dial(t, Options{Backends: guard}, address, open)
					if allowed {
						eventually(t, "it is reached where that is allowed", func() bool { return reached.Load() > 0 })
					} else if n := reached.Load(); n > 0 {
						t.Errorf("%s was reached %d times", address, n)
					}
				}
			}
		})
	}
}

// ownAddresses are one address of this machine that others can dial, if there is one.
func ownAddresses(t *testing.T) []string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if network, ok := one.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return []string{network.IP.String()}
		}
	}
	return nil
}
