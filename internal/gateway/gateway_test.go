package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// fetch returns the status and the body. Both are empty when there is no answer.
func fetch(address net.Addr, path string) (int, string) { return send(http.MethodGet, address, path) }

// tell sends an instruction.
func tell(address net.Addr, path string) { _, _ = send(http.MethodPost, address, path) }

func send(method string, address net.Addr, path string) (int, string) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(method, "http://"+address.String()+path, http.NoBody)
	if err != nil {
		return 0, ""
	}
	if method == http.MethodPost {
		document.Instruct(request)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("did not come true in 10 s: %s", what)
		case <-tick.C:
		}
	}
}

func TestGatewayFromAFile(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "backend "+r.URL.Path) }))
	defer backend.Close()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	write := func(route string) {
		text := `{apiVersion: slipway.dev/v1alpha1, kind: APIGateway, metadata: {name: edge}, spec: {routes: [` + route + `]},
backends: {"app:80": {addresses: ["` + backend.Listener.Addr().String() + `"]}}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{name: app, path: /a, backendService: {name: app, port: 80}}`)
	addresses := make(chan [3]net.Addr, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	wait.Go(func() {
		err := Run(ctx, Options{
			ConfigFile: path, Version: "1.2.3", HTTP: "127.0.0.1:0", Admin: "127.0.0.1:0",
			DrainDelay: 300 * time.Millisecond, DrainTimeout: 5 * time.Second, Log: slog.New(slog.DiscardHandler),
			Listening: func(http, https, admin net.Addr) { addresses <- [3]net.Addr{http, https, admin} },
		})
		if err != nil {
			t.Error(err)
		}
	})
	at := <-addresses
	eventually(t, "the gateway is ready", func() bool { code, _ := fetch(at[2], "/readyz"); return code == http.StatusOK })
	if code, body := fetch(at[0], "/a/b"); code != http.StatusOK || body != "backend /a/b" {
		t.Errorf("got %d %q", code, body)
	}
	if code, _ := fetch(at[0], "/new"); code != http.StatusNotFound {
		t.Errorf("got %d", code)
	}
	write(`{name: new, path: /new, directResponse: {statusCode: 200, body: hello}}`)
	eventually(t, "the changed file is served", func() bool { _, body := fetch(at[0], "/new"); return body == "hello" })
	eventually(t, "the second content of the file is said to be served", func() bool {
		_, doc := fetch(at[2], "/revision")
		return strings.Contains(doc, `"version":"1.2.3"`) && strings.Contains(doc, `"generation":2`)
	})
	write(`nonsense: [`)
	eventually(t, "the file that cannot be read is rejected", func() bool {
		_, doc := fetch(at[2], "/revision")
		return strings.Contains(doc, `"generation":2,"rejected":{"generation":3,"reason":"Invalid"`)
	})
	if _, body := fetch(at[0], "/new"); body != "hello" {
		t.Errorf("after a file that cannot be read: got %q", body)
	}
	if _, metrics := fetch(at[2], "/metrics"); !strings.Contains(metrics, `slipway_gateway_requests_total{route="new",status="2xx"}`) {
		t.Errorf("no requests in\n%s", metrics)
	}
	cancel()
	eventually(t, "it is not ready any more", func() bool { code, _ := fetch(at[2], "/readyz"); return code == http.StatusServiceUnavailable })
	if code, _ := fetch(at[0], "/new"); code != http.StatusOK {
		t.Errorf("a request while draining got %d", code)
	}
	wait.Wait()
	if code, _ := fetch(at[0], "/new"); code != 0 {
		t.Errorf("after the end: got %d", code)
	}
}

func TestAFileMayAskForHealthChecks(t *testing.T) {
	answering := func(status int, name string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				w.WriteHeader(status)
			}
			_, _ = io.WriteString(w, name)
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	sick, well := answering(http.StatusInternalServerError, "sick"), answering(http.StatusOK, "well")
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	text := `{apiVersion: slipway.dev/v1alpha1, kind: APIGateway, metadata: {name: edge}, spec: {
routes: [{name: app, backendService: {name: app, port: 80}}],
healthChecks: [{name: app, port: 80, path: /healthz, periodSeconds: 1, timeoutSeconds: 60, unhealthyThreshold: 1}]},
backends: {"app:80": {addresses: ["` + sick + `", "` + well + `"]}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log lockedbuffer.Buffer
	addresses := make(chan [2]net.Addr, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	wait.Go(func() {
		err := Run(ctx, Options{
			ConfigFile: path, HTTP: "127.0.0.1:0", Admin: "127.0.0.1:0", DrainTimeout: 5 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Listening: func(http, _, admin net.Addr) { addresses <- [2]net.Addr{http, admin} },
		})
		if err != nil {
			t.Error(err)
		}
	})
	at := <-addresses
	eventually(t, "an endpoint is found unhealthy", func() bool { return strings.Contains(log.String(), "an endpoint is unhealthy") })
	if text := log.String(); !strings.Contains(text, "backend=app:80 endpoint="+sick) || !strings.Contains(text, "the answer is 500") {
		t.Errorf("the log says\n%s", text)
	}
	for range 20 {
		if code, body := fetch(at[0], "/"); code != http.StatusOK || body != "well" {
			t.Errorf("got %d %q", code, body)
		}
	}
	if _, metrics := fetch(at[1], "/metrics"); !strings.Contains(metrics, `slipway_gateway_health_checks_total{port="80",result="error",service="app"}`) {
		t.Errorf("no checks in\n%s", metrics)
	}
}

func TestGatewayThatCannotStartSaysWhy(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"no file":      {Options{ConfigFile: filepath.Join(t.TempDir(), "none"), HTTP: "127.0.0.1:0"}, "read the configuration"},
		"no collector": {Options{TraceEndpoint: "collector:4318"}, "is not an http or https address"},
		"taken port":   {Options{HTTP: "127.0.0.1:0", Admin: taken.Addr().String()}, "listen"},
	} {
		test.options.Log = slog.New(slog.DiscardHandler)
		test.options.DrainTimeout = time.Second
		if err := Run(t.Context(), test.options); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func TestTheLastTracesAreSentAtTheEnd(t *testing.T) {
	traces := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		traces <- string(body)
	}))
	defer collector.Close()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	text := `{apiVersion: slipway.dev/v1alpha1, kind: APIGateway, metadata: {name: edge}, spec: {routes: [{name: hello, directResponse: {statusCode: 200}}]}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address, done := make(chan net.Addr, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		done <- Run(ctx, Options{
			ConfigFile: path, HTTP: "127.0.0.1:0", DrainTimeout: 5 * time.Second, Log: slog.New(slog.DiscardHandler),
			TraceEndpoint: collector.URL, TraceSamplePercent: 100, Listening: func(http, _, _ net.Addr) { address <- http },
		})
	}()
	at := <-address
	eventually(t, "a request is answered", func() bool { code, _ := fetch(at, "/"); return code == http.StatusOK })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	select {
	case body := <-traces:
		if !strings.Contains(body, "hello") {
			t.Errorf("got %q", body)
		}
	default:
		t.Error("no traces came")
	}
}
