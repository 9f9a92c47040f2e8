//go:build scale

// Package propagation measures how soon a gateway serves a change: from the API server's
// answer to the first request that sees it.
package propagation

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// goals are the medians and 99th percentiles that are wanted, by number of routes.
var goals = map[int][2]time.Duration{
	10:   {30 * time.Millisecond, 150 * time.Millisecond},
	1000: {60 * time.Millisecond, 300 * time.Millisecond},
}

// TestPropagation makes BENCH_SAMPLES changes of each kind (default 60), one each BENCH_EVERY
// (default 1s).
func TestPropagation(t *testing.T) {
	samples, err := strconv.Atoi(cmp.Or(os.Getenv("BENCH_SAMPLES"), "60"))
	if err != nil {
		t.Fatal(err)
	}
	every, err := time.ParseDuration(cmp.Or(os.Getenv("BENCH_EVERY"), "1s"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\n| routes | of | change | p50 | p90 | p99 | max |\n|---|---|---|---|---|---|---|\n")
	for _, routes := range []int{10, 1000} {
		for of, start := range map[string]func(*bench, int) []change{"an APIGateway": startAPIGateway, "a Gateway": startGateway} {
			b := newBench(t)
			for _, c := range start(b, routes) {
				latencies := b.sample(c, samples, every)
				at := func(percent int) time.Duration {
					return latencies[(len(latencies)-1)*percent/100].Round(10 * time.Microsecond)
				}
				fmt.Printf("| %d | %s | %s | %v | %v | %v | %v |\n", routes, of, c.name, at(50), at(90), at(99), at(100))
				if goal := goals[routes]; at(50) > goal[0] || at(99) > goal[1] {
					t.Errorf("%d routes of %s, %s: p50 %v and p99 %v, want %v and %v", routes, of, c.name, at(50), at(99), goal[0], goal[1])
				}
			}
		}
	}
	fmt.Println()
}

// change is a kind of change. It returns the request that sees it, and its answer; empty: any.
type change struct {
	name string
	make func(i int) (path, body string)
}

// bench is a gateway, and two backends of which one is in use.
type bench struct {
	t         *testing.T
	namespace string
	slice     *discoveryv1.EndpointSlice
	backends  [2]*net.TCPAddr
	address   string
	client    http.Client
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, namespace: env.Namespace(t)}
	for i := range b.backends {
		b.backends[i] = startBackend(t, fmt.Sprintf("backend-%d", i))
	}
	b.create(&corev1.Service{ObjectMeta: b.named("app"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	b.slice = &discoveryv1.EndpointSlice{ObjectMeta: b.named("app-1"), AddressType: discoveryv1.AddressTypeIPv4}
	b.slice.Labels = map[string]string{discoveryv1.LabelServiceName: "app"}
	b.use(0)
	b.create(b.slice)
	return b
}

func (b *bench) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: b.namespace, Name: name}
}

// startAPIGateway serves an APIGateway with so many routes.
func startAPIGateway(b *bench, routes int) []change {
	b.t.Helper()
	object := &slipwayv1alpha1.APIGateway{ObjectMeta: b.named("edge")}
	for i := range routes {
		object.Spec.Routes = append(object.Spec.Routes, slipwayv1alpha1.Route{
			Host: slipwayv1alpha1.HostName(fmt.Sprintf("app-%d.example.com", i)), Path: "/api/",
			BackendService: &slipwayv1alpha1.BackendService{Name: "app", Port: 80},
		})
	}
	object.Spec.Routes[0].Host = ""
	b.create(object)
	addresses := make(chan string, 1)
	b.run(gateway.Options{HTTP: "127.0.0.1:0", Listening: func(http, _, _ net.Addr) { addresses <- http.String() }})
	b.address = "http://" + <-addresses
	b.await("/api/", "backend-0")
	return []change{
		{"a route", func(i int) (path, body string) {
			path = fmt.Sprintf("/changed-%d/", i)
			object.Spec.Routes[0].Path = path
			b.update(object)
			return path, ""
		}},
		{"the endpoints", func(i int) (path, body string) { return object.Spec.Routes[0].Path, b.changeEndpoints(i) }},
	}
}

// startGateway serves a Gateway with so many HTTPRoutes.
func startGateway(b *bench, routes int) []change {
	b.t.Helper()
	files := []string{}
	for _, kind := range []string{"gateways", "httproutes", "grpcroutes", "referencegrants", "backendtlspolicies", "listenersets"} {
		files = append(files, "config/crd/standard/gateway.networking.k8s.io_"+kind+".yaml")
	}
	if err := env.InstallModule(b.t.Context(), "sigs.k8s.io/gateway-api", files...); err != nil {
		b.t.Fatal(err)
	}
	port := freePort(b.t)
	b.create(&gatewayv1.Gateway{ObjectMeta: b.named("edge"), Spec: gatewayv1.GatewaySpec{
		GatewayClassName: "slipway", Listeners: []gatewayv1.Listener{{Name: "web", Port: port, Protocol: gatewayv1.HTTPProtocolType}},
	}})
	for i := range routes {
		b.create(b.route(fmt.Sprintf("app-%d", i), fmt.Sprintf("/app-%d/", i)))
	}
	b.run(gateway.Options{Kind: gateway.KindGateway})
	b.address = fmt.Sprintf("http://127.0.0.1:%d", port)
	b.await("/app-0/", "backend-0")
	changed := b.route("app-0", "")
	if err := env.Client.Get(b.t.Context(), client.ObjectKeyFromObject(changed), changed); err != nil {
		b.t.Fatal(err)
	}
	return []change{
		{"a route", func(i int) (path, body string) {
			path = fmt.Sprintf("/changed-%d/", i)
			changed.Spec = b.route("app-0", path).Spec
			b.update(changed)
			return path, ""
		}},
		{"a new route", func(i int) (path, body string) {
			path = fmt.Sprintf("/new-%d/", i)
			b.create(b.route(fmt.Sprintf("new-%d", i), path))
			return path, ""
		}},
		{"the endpoints", func(i int) (path, body string) { return "/app-1/", b.changeEndpoints(i) }},
	}
}

func (b *bench) route(name, path string) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: b.named(name), Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}},
		Rules: []gatewayv1.HTTPRouteRule{{
			Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: &path}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
				BackendObjectReference: gatewayv1.BackendObjectReference{Name: "app", Port: new(gatewayv1.PortNumber(80))},
			}}},
		}},
	}}
}

// freePort is one that nobody listens on.
func freePort(t *testing.T) int32 {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

// run runs the gateway "edge" of the namespace until the test ends.
func (b *bench) run(options gateway.Options) {
	options.Gateway, options.Namespace, options.Access = "edge", b.namespace, env.Config
	options.DrainTimeout, options.Log = time.Second, slog.New(slog.DiscardHandler)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- gateway.Run(ctx, options) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
}

// startBackend listens on an address that an EndpointSlice may have: not on loopback.
func startBackend(t *testing.T, name string) *net.TCPAddr {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		own, ok := address.(*net.IPNet)
		if !ok || own.IP.To4() == nil || !own.IP.IsGlobalUnicast() {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(own.IP.String(), "0"))
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
		_ = server.Listener.Close()
		server.Listener = listener
		server.Start()
		t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
		return listener.Addr().(*net.TCPAddr)
	}
	t.Skip("this machine has no address but loopback, which an EndpointSlice must not have")
	return nil
}

func (b *bench) create(object client.Object) {
	b.t.Helper()
	if err := env.Client.Create(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) update(object client.Object) {
	b.t.Helper()
	if err := env.Client.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

// use makes a backend the only endpoint.
func (b *bench) use(i int) {
	b.slice.Ports = []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(b.backends[i].Port))}}
	b.slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{b.backends[i].IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}}
}

// changeEndpoints sends the requests of all routes to the other backend, and returns its answer.
func (b *bench) changeEndpoints(i int) string {
	next := (i + 1) % 2
	b.use(next)
	b.update(b.slice)
	return fmt.Sprintf("backend-%d", next)
}

// sample makes changes and returns the times from the API server's answer to the first request that sees each, sorted.
func (b *bench) sample(c change, samples int, every time.Duration) []time.Duration {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var latencies []time.Duration
	for i := range samples {
		<-ticker.C
		path, body := c.make(i)
		answered := time.Now()
		b.await(path, body)
		latencies = append(latencies, time.Since(answered))
	}
	slices.Sort(latencies)
	return latencies
}

// await asks, a thousand times a second, until the answer is this; empty: any.
func (b *bench) await(path, body string) {
	b.t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(30 * time.Second)
	for {
		response, err := b.client.Get(b.address + path)
		if err != nil {
			if time.Now().After(deadline) {
				b.t.Fatal(err)
			}
			<-ticker.C
			continue // it does not listen yet
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err == nil && response.StatusCode == http.StatusOK && (body == "" || string(got) == body) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: got %s %q after 30 s, want %q", path, response.Status, got, body)
		}
		<-ticker.C
	}
}
