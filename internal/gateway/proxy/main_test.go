package proxy

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/dialguard"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	fuzzes := flag.Lookup("test.fuzz").Value.String() != "" // then a goroutine of the runtime waits for signals to the end
	if code == 0 && !fuzzes && !poll(func() bool { return runtime.NumGoroutine() <= before }) {
		stacks := make([]byte, 1<<20)
		fmt.Fprintln(os.Stderr, "goroutines are left:\n"+string(stacks[:runtime.Stack(stacks, true)]))
		code = 1
	}
	os.Exit(code)
}

// poll waits until a condition is true, for 10 s at most.
func poll(condition func() bool) bool {
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !poll(condition) {
		t.Fatalf("did not come true in 10 s: %s", what)
	}
}

// compile makes a table of routes in YAML. The Service "app" has these endpoints at port
// 80. "h2" has the same endpoints and speaks HTTP/2.
func compile(t testing.TB, routes string, secrets map[string]map[string][]byte, endpoints ...string) *table.Table {
	t.Helper()
	var spec []slipwayv1alpha1.Route
	if err := yaml.UnmarshalStrict([]byte(routes), &spec); err != nil {
		t.Fatal(err)
	}
	compiled, problems := apiroutes.Compile(apiroutes.Input{
		Routes: spec,
		Services: map[string]model.Service{
			"app":  {Ports: map[int32]model.ServicePort{80: {Endpoints: endpoints}}},
			"h2":   {Ports: map[int32]model.ServicePort{80: {Endpoints: endpoints, AppProtocol: "kubernetes.io/h2c"}}},
			"none": {Ports: map[int32]model.ServicePort{80: {}}},
		},
		Secrets: secrets,
	})
	for _, problem := range problems {
		if problem.Reason != slipwayv1alpha1.ReasonNoEndpoints {
			t.Logf("problem: %+v", problem)
		}
	}
	return compiled
}

// gateway is a running gateway.
type gateway struct {
	t       testing.TB
	handler *Handler
	server  *Server
	address string
}

// start starts a gateway with routes to endpoints.
func start(t testing.TB, options Options, routes string, endpoints ...string) *gateway {
	t.Helper()
	return startTable(t, options, compile(t, routes, nil, endpoints...))
}

func startTable(t testing.TB, options Options, compiled *table.Table) *gateway {
	t.Helper()
	return startServer(t, options, ServerOptions{}, compiled)
}

func startServer(t testing.TB, options Options, serverOptions ServerOptions, compiled *table.Table) *gateway {
	t.Helper()
	if options.Guard == nil {
		options.Guard = &dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}} // where servers of tests are
	}
	handler := New(options)
	if compiled != nil {
		handler.Set(Config{Table: compiled, LogPercent: 100})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serverOptions.HTTP, serverOptions.ErrorLog = listener, log.New(io.Discard, "", 0)
	serverOptions.Clock, _ = options.Clock.(clock.WithTicker)
	server := NewServer(handler, serverOptions)
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := server.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end() // requests that are still in flight may be cut
		_ = server.Shutdown(ended)
		wait.Wait()
		cancel()
		handler.features.mirror.Wait()
		handler.registry.Keep(func(string) bool { return false })
	})
	return &gateway{t: t, handler: handler, server: server, address: listener.Addr().String()}
}

// serve starts a backend and returns its address.
func serve(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// answer is a response without its body.
type answer struct {
	StatusCode int
	Header     http.Header
	Trailer    http.Header
	Close      bool
}

func newAnswer(r *http.Response) answer {
	return answer{StatusCode: r.StatusCode, Header: r.Header, Trailer: r.Trailer, Close: r.Close}
}

// raw sends bytes and returns the response and its body.
func (g *gateway) raw(request string) (answer, string) {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, request)
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		g.t.Fatalf("read the response to %q: %v", request, err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return newAnswer(response), string(body)
}

// send sends a request through the gateway.
func (g *gateway) send(request *http.Request) (answer, string) {
	g.t.Helper()
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return newAnswer(response), string(body)
}

func (g *gateway) request(method, path string, fields ...string) *http.Request {
	g.t.Helper()
	request, err := http.NewRequest(method, "http://"+g.address+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			request.Host = fields[i+1]
		}
		request.Header.Add(fields[i], fields[i+1])
	}
	return request
}

func (g *gateway) get(path string, fields ...string) (answer, string) {
	g.t.Helper()
	return g.send(g.request("GET", path, fields...))
}

// seen is a request as the backend received it.
type seen struct {
	*http.Request

	body string
}

// recording answers ok and reports each complete request.
func recording(t testing.TB) (string, chan seen) {
	requests := make(chan seen, 100)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		requests <- seen{r, string(body)}
		_, _ = io.WriteString(w, "ok")
	})
	return address, requests
}

// rawBackend answers every request with the same bytes.
func rawBackend(t testing.TB, response string) string {
	t.Helper()
	return listen(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			_, _ = io.WriteString(conn, response)
		}
	})
}

// listen serves each connection on a goroutine, which ends with the test.
func listen(t testing.TB, serve func(conn net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wait.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		wait.Wait()
	})
	return listener.Addr().String()
}

const (
	toApp = `[{backendService: {name: app, port: 80}}]`
	toH2  = `[{backendService: {name: h2, port: 80}}]`
)

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func status(response answer) string { return strconv.Itoa(response.StatusCode) }

func join(values []string) string { return strings.Join(values, " | ") }
