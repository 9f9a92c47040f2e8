package proxy

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/connlimit"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// compileLimited makes a table with one route to the Service "app", which has a policy.
func compileLimited(t *testing.T, policy, endpoint string) *table.Table {
	t.Helper()
	var parsed slipwayv1alpha1.BackendPolicy
	if err := yaml.UnmarshalStrict([]byte(policy), &parsed); err != nil {
		t.Fatal(err)
	}
	parsed.Name, parsed.Port = "app", 80
	compiled, problems := apigateway.Compile(apigateway.Input{
		Routes:          []slipwayv1alpha1.Route{{Name: "app", BackendService: &slipwayv1alpha1.BackendService{Name: "app", Port: 80}}},
		BackendPolicies: []slipwayv1alpha1.BackendPolicy{parsed},
		Services:        map[string]model.Service{"app": {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{endpoint}}}}},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return compiled
}

func TestABackendIsAskedForNoMoreThanItsPolicySays(t *testing.T) {
	for name, test := range map[string]struct {
		policy  string
		arrives int // how many arrive at the backend
		waits   int
		failure string
	}{
		"connections": {`{maxConnections: 2, maxPendingRequests: 3}`, 2, 3, "max_pending_requests"},
		"requests":    {`{maxRequests: 2}`, 2, 0, "max_requests"},
		"HTTP/2":      {`{protocol: H2C, maxConnections: 1, maxRequests: 2}`, 2, 0, "max_requests"},
	} {
		t.Run(name, func(t *testing.T) {
			hold, arrived := make(chan struct{}), make(chan struct{}, 100)
			backend := serve(t, func(http.ResponseWriter, *http.Request) {
				arrived <- struct{}{}
				<-hold
			})
			var log lockedbuffer.Buffer
			registry := prometheus.NewPedanticRegistry()
			g := startTable(t, Options{AccessLog: &log, Metrics: registry}, compileLimited(t, test.policy, backend))
			var wait sync.WaitGroup
			codes := make(chan int, 100)
			for range test.arrives + test.waits {
				wait.Go(func() {
					response, _ := g.get("/")
					codes <- response.StatusCode
				})
			}
			service := g.handler.registry.Service("app:80", nil)
			eventually(t, "all are under way", func() bool { return service.Requests() == test.arrives+test.waits })
			// A request counts as soon as it may be sent, which is before it arrives.
			eventually(t, "as many as may have arrived", func() bool { return len(arrived) >= test.arrives })
			for range 5 {
				response, _ := g.get("/")
				want(t, "status above the limit", response.StatusCode, 503)
			}
			want(t, "arrived", len(arrived), test.arrives)
			close(hold)
			wait.Wait()
			close(codes)
			for code := range codes {
				want(t, "status", code, 200)
			}
			// A client may get its response before the gateway has seen the end of it.
			eventually(t, "none is under way", func() bool { return service.Requests() == 0 })
			response, _ := g.get("/")
			want(t, "status afterwards", response.StatusCode, 200)
			eventually(t, "the log says why", func() bool { return strings.Count(join(log.Lines()), `"failure":"`+test.failure+`"`) == 5 })
			want(t, "counted", series(t, registry)["slipway_gateway_upstream_errors_total "+test.failure+" app"], 5.0)
			if got := service.Ejected(); len(got) > 0 {
				t.Errorf("left out: %v", got)
			}
		})
	}
}

func TestAPolicyThatChangesHoldsAtOnce(t *testing.T) {
	hold := make(chan struct{})
	backend := serve(t, func(http.ResponseWriter, *http.Request) { <-hold })
	g := startTable(t, Options{}, compileLimited(t, `{maxConnections: 1}`, backend))
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			response, _ := g.get("/")
			want(t, "status", response.StatusCode, 200)
		})
	}
	service := g.handler.registry.Service("app:80", nil)
	eventually(t, "one is there, two wait", func() bool { return service.Requests() == 3 && service.Busy() == 1 })
	g.handler.Set(Config{Table: compileLimited(t, `{maxConnections: 3}`, backend)})
	eventually(t, "all are there", func() bool { return service.Busy() == 3 })
	close(hold)
	wait.Wait()
}

func TestConnectionsOfClientsAreBounded(t *testing.T) {
	backend := serve(t, func(http.ResponseWriter, *http.Request) {})
	registry := prometheus.NewPedanticRegistry()
	compiled := compile(t, toApp, nil, backend)
	g := startTable(t, Options{Metrics: registry}, compiled)
	g.handler.Set(Config{Table: compiled, Connections: connlimit.Limits{Total: 6, PerClient: 3, Exempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}}})
	// dial opens a connection from an address. It reports whether the connection is served.
	dial := func(from string) (net.Conn, bool) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := dialer.Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		_, err = conn.Read(make([]byte, 1))
		return conn, err == nil
	}
	var last net.Conn
	for i, from := range []string{"127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.9", "127.0.0.9", "127.0.0.9"} {
		conn, served := dial(from)
		if served {
			last = conn
		}
		want(t, from+" is served", served, i != 3 && i != 7)
	}
	counts := series(t, registry)
	want(t, "refused by client", counts["slipway_gateway_connections_refused_total max_per_client"], 1.0)
	want(t, "refused in all", counts["slipway_gateway_connections_refused_total max"], 1.0)
	last.Close()
	eventually(t, "one that goes makes room", func() bool {
		_, served := dial("127.0.0.2")
		return served
	})
}

func TestConnectionsHaveBoundsByDefault(t *testing.T) {
	config, err := NewConfig(&slipwayv1alpha1.APIGatewaySpec{TrustedProxies: []string{"10.0.0.0/8"}})
	if err != nil || config.Connections.Total != 10000 || config.Connections.PerClient != 0 || len(config.Connections.Exempt) != 1 || config.Requests != 10000 {
		t.Errorf("got %+v, %v", config, err)
	}
	config, _ = NewConfig(&slipwayv1alpha1.APIGatewaySpec{Connections: &slipwayv1alpha1.ConnectionLimits{Max: new(int32(50000))}})
	want(t, "requests of as many connections", config.Requests, 50000)
	config, _ = NewConfig(&slipwayv1alpha1.APIGatewaySpec{Connections: &slipwayv1alpha1.ConnectionLimits{Max: new(int32(5)), MaxPerClient: new(int32(2)), MaxRequests: new(int32(7))}})
	if config.Connections.Total != 5 || config.Connections.PerClient != 2 || config.Requests != 7 {
		t.Errorf("got %+v", config)
	}
}
