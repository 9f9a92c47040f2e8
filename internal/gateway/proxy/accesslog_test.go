package proxy

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAnOutputThatNobodyReadsDelaysNoRequest(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close(); writer.Close() })
	backend := serve(t, func(http.ResponseWriter, *http.Request) {})
	registry := prometheus.NewPedanticRegistry()
	g := start(t, Options{AccessLog: writer, Metrics: registry}, toApp, backend)
	// The gateway waits for its last lines when it ends, so they are read then.
	t.Cleanup(func() { go func() { _, _ = io.Copy(io.Discard, reader) }() })
	path := "/" + strings.Repeat("x", 8<<10)
	client := &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	const requests = 400 // 3 MB of lines, of which a pipe takes 64 KiB
	for range requests {
		response, err := client.Get("http://" + g.address + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		want(t, "status", response.StatusCode, 200)
	}
	dropped := series(t, registry)["slipway_gateway_access_log_lines_dropped_total"]
	if dropped == 0 || dropped > requests {
		t.Errorf("%v lines are counted as dropped", dropped)
	}
}
