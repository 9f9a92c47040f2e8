package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// secureBackend speaks TLS only. It says what it has got: the protocol, the server name, and the host.
func secureBackend(t *testing.T, ca *authority.Authority, name string, requests *atomic.Int64) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Upgrade") != "" {
			conn, in, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_, _ = io.Copy(conn, in)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s for %s, host %s: %s", r.Proto, r.TLS.ServerName, r.Host, body)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, x509.Certificate{DNSNames: []string{name}})}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// withTLS compiles rules for the Services "app" and "h2" with TLS, and a mirror of them.
func withTLS(t *testing.T, endpoint string, with *model.BackendTLS) *table.Table {
	t.Helper()
	services, settings := map[model.ServiceName]model.Service{}, map[model.BackendName]model.Settings{}
	var rules []table.Rule
	for i, service := range []struct{ name, appProtocol string }{{"app", "https"}, {"h2", "kubernetes.io/h2c"}} {
		name := model.ServiceName{Name: service.name}
		services[name] = model.Service{Ports: map[int32]model.ServicePort{443: {AppProtocol: service.appProtocol, Endpoints: []string{endpoint}}}}
		settings[model.BackendName{ServiceName: name, Port: 443}] = model.Settings{TLS: with}
		rules = append(rules, table.Rule{
			Name: service.name, Index: i, Listeners: []int{0}, PathType: table.PathPrefix, Path: "/" + service.name,
			Backends: []model.BackendRef{{Service: service.name, Port: 443, Weight: 1}},
			Mirrors:  []model.MirrorRef{{Service: service.name, Port: 443, Numerator: 100, Denominator: 100}},
		})
	}
	compiled, problems := table.Compile(table.Input{Listeners: []table.Listener{{}}, Rules: rules, Services: services, Settings: settings})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return compiled
}

func backendTLS(t *testing.T, in model.BackendTLSInput) *model.BackendTLS {
	t.Helper()
	made, err := model.NewBackendTLS(in)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestBackendsAreReachedWithTLS(t *testing.T) {
	ca := authority.New(t, "ca")
	var requests atomic.Int64
	endpoint := secureBackend(t, ca, "app.internal", &requests)
	g := startTable(t, Options{}, withTLS(t, endpoint, backendTLS(t, model.BackendTLSInput{Roots: ca.PEM(), ServerName: "app.internal"})))
	for path, proto := range map[string]string{"/app": "HTTP/1.1", "/h2": "HTTP/2.0"} {
		before := requests.Load()
		request := g.request(http.MethodPost, path)
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader("body")), 4
		if got, body := g.send(request); got.StatusCode != http.StatusOK || body != proto+" for app.internal, host "+request.Host+": body" {
			t.Errorf("%s: %d %s", path, got.StatusCode, body)
		}
		eventually(t, "the copy has arrived as well", func() bool { return requests.Load() == before+2 })
	}
}

func TestTunnelsGoThroughTLS(t *testing.T) {
	ca := authority.New(t, "ca")
	endpoint := secureBackend(t, ca, "app.internal", new(atomic.Int64))
	g := startTable(t, Options{}, withTLS(t, endpoint, backendTLS(t, model.BackendTLSInput{Roots: ca.PEM(), ServerName: "app.internal"})))
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "GET /app HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil) //nolint:bodyclose // it has none
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response, err)
	}
	_, _ = io.WriteString(conn, "ping\n")
	if line, err := in.ReadString('\n'); line != "ping\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

// A request that was to go to a backend that proves who it is goes nowhere else.
func TestABackendThatDoesNotProveWhoItIsGetsNothing(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	right := model.BackendTLSInput{Roots: ca.PEM(), ServerName: "app.internal"}
	for name, change := range map[string]func(in *model.BackendTLSInput){
		"another authority": func(in *model.BackendTLSInput) { in.Roots = other.PEM() },
		"another name":      func(in *model.BackendTLSInput) { in.ServerName = "b.internal" },
		"another alternative name": func(in *model.BackendTLSInput) {
			in.Names = []string{"b.internal"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			endpoint := secureBackend(t, ca, "app.internal", &requests)
			g := startTable(t, Options{}, withTLS(t, endpoint, backendTLS(t, right)))
			for _, path := range []string{"/app", "/h2"} {
				if got, body := g.get(path); got.StatusCode != http.StatusOK {
					t.Fatalf("%s: %d %s", path, got.StatusCode, body)
				}
			}
			eventually(t, "the copies have arrived as well", func() bool { return requests.Load() == 4 })
			wrong := right
			change(&wrong)
			g.handler.Set(Config{Table: withTLS(t, endpoint, backendTLS(t, wrong)), LogPercent: 100})
			for _, path := range []string{"/app", "/h2"} {
				if got, body := g.get(path); got.StatusCode != http.StatusServiceUnavailable && got.StatusCode != http.StatusBadGateway {
					t.Errorf("%s: %d %s", path, got.StatusCode, body)
				}
			}
			if n := requests.Load(); n != 4 {
				t.Errorf("%d requests too many have arrived", n-4)
			}
		})
	}
}
