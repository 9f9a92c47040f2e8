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
	fmt.Printf("\n| routes | change | p50 | p90 | p99 | max |\n|---|---|---|---|---|---|\n")
	for _, routes := range []int{10, 1000} {
		b := newBench(t, routes)
		for _, kind := range []struct {
			name   string
			change func(i int) (path, body string)
		}{
			{"a route", b.changeRoute},
			{"the endpoints", b.changeEndpoints},
		} {
			ticker := time.NewTicker(every)
			var latencies []time.Duration
			for i := range samples {
				<-ticker.C
				latencies = append(latencies, b.measure(func() (string, string) { return kind.change(i) }))
			}
			ticker.Stop()
			slices.Sort(latencies)
			at := func(percent int) time.Duration {
				return latencies[(len(latencies)-1)*percent/100].Round(10 * time.Microsecond)
			}
			fmt.Printf("| %d | %s | %v | %v | %v | %v |\n", routes, kind.name, at(50), at(90), at(99), at(100))
			if goal := goals[routes]; at(50) > goal[0] || at(99) > goal[1] {
				t.Errorf("%d routes, %s: p50 %v and p99 %v, want %v and %v", routes, kind.name, at(50), at(99), goal[0], goal[1])
			}
		}
	}
	fmt.Println()
}

// bench is a gateway with its routes, and two backends of which one is in use.
type bench struct {
	t        *testing.T
	gateway  *slipwayv1alpha1.APIGateway
	slice    *discoveryv1.EndpointSlice
	backends [2]*net.TCPAddr
	address  string
	client   http.Client
}

func newBench(t *testing.T, routes int) *bench {
	t.Helper()
	b := &bench{t: t}
	namespace := env.Namespace(t)
	for i := range b.backends {
		b.backends[i] = startBackend(t, fmt.Sprintf("backend-%d", i))
	}
	b.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	})
	b.slice = &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "app-1", Labels: map[string]string{discoveryv1.LabelServiceName: "app"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	b.use(0)
	b.create(b.slice)
	b.gateway = &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edge"}}
	for i := range routes {
		b.gateway.Spec.Routes = append(b.gateway.Spec.Routes, slipwayv1alpha1.Route{
			Host: slipwayv1alpha1.HostName(fmt.Sprintf("app-%d.example.com", i)), Path: "/api/",
			BackendService: &slipwayv1alpha1.BackendService{Name: "app", Port: 80},
		})
	}
	b.gateway.Spec.Routes[0].Host = ""
	b.create(b.gateway)
	b.run(namespace)
	b.await("/api/", "backend-0")
	return b
}

func (b *bench) run(namespace string) {
	addresses, done := make(chan string, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		done <- gateway.Run(ctx, gateway.Options{
			Gateway: "edge", Namespace: namespace, Access: env.Config, HTTP: "127.0.0.1:0",
			DrainTimeout: time.Second, Log: slog.New(slog.DiscardHandler),
			Listening: func(http, _, _ net.Addr) { addresses <- http.String() },
		})
	}()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	b.address = "http://" + <-addresses
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

// changeRoute gives a route a new path. It returns the request that sees it, and its answer.
func (b *bench) changeRoute(i int) (path, body string) {
	path = fmt.Sprintf("/changed-%d/", i)
	b.gateway.Spec.Routes[0].Path = path
	b.update(b.gateway)
	return path, ""
}

// changeEndpoints sends the requests of all routes to the other backend.
func (b *bench) changeEndpoints(i int) (path, body string) {
	next := (i + 1) % 2
	b.use(next)
	b.update(b.slice)
	return b.gateway.Spec.Routes[0].Path, fmt.Sprintf("backend-%d", next)
}

// measure makes a change and returns the time from the API server's answer to the first
// request that sees it.
func (b *bench) measure(change func() (path, body string)) time.Duration {
	path, body := change()
	answered := time.Now()
	b.await(path, body)
	return time.Since(answered)
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
			b.t.Fatal(err)
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
