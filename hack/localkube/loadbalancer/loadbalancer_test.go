package loadbalancer

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/hack/localkube/api"
)

// player is an API server that lists no Service, plays the events that a test
// sends, and hands on what is written.
type player struct {
	events chan string
	writes chan string
}

// failure ends a watch.
const failure = `{"type":"ERROR","object":{}}`

func (p *player) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	switch {
	case request.Method == http.MethodPatch:
		var patch struct {
			Metadata struct{ UID string }
			Status   status
		}
		if err := json.NewDecoder(request.Body).Decode(&patch); err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		address := "none"
		if len(patch.Status.LoadBalancer.Ingress) > 0 {
			address = patch.Status.LoadBalancer.Ingress[0].IP
		}
		p.writes <- strings.Join([]string{request.URL.Path, patch.Metadata.UID, address}, " ")
		_, _ = response.Write([]byte("{}"))
	case request.URL.Query().Get("watch") == "":
		_, _ = response.Write([]byte(`{"metadata":{"resourceVersion":"7"},"items":[]}`))
	case request.URL.Query().Get("resourceVersion") != "7":
		http.Error(response, "gone", http.StatusGone)
	default:
		p.play(response, request)
	}
}

func (p *player) play(response http.ResponseWriter, request *http.Request) {
	for {
		select {
		case <-request.Context().Done():
			return
		case event := <-p.events:
			_, _ = response.Write([]byte(event))
			if event == failure {
				return // as an API server does
			}
			response.(http.Flusher).Flush()
		}
	}
}

func (p *player) send(t *testing.T, kind string, s service) {
	t.Helper()
	content, err := json.Marshal(map[string]any{"type": kind, "object": s})
	if err != nil {
		t.Fatal(err)
	}
	p.events <- string(content)
}

// expect waits for the next write.
func (p *player) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-p.writes:
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("write (-want +got):\n%s", diff)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no write within 10 s, want %s", want)
	}
}

func TestRun(t *testing.T) {
	p := &player{events: make(chan string), writes: make(chan string, 10)}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Run(ctx, api.For(server.URL, server.Client()), network, t.Output()) }()

	const path, first, second = "/api/v1/namespaces/default/services/", "10.207.17.1", "10.207.17.2"
	p.send(t, "ADDED", named("a", "", first))
	p.expect(t, path+"a/status a "+first)
	// An event from before the write changes nothing, and a Service of a class is not ours.
	p.send(t, "MODIFIED", named("a", first, first))
	class := "other"
	foreign := named("c", "", "")
	foreign.Spec.LoadBalancerClass = &class
	p.send(t, "ADDED", foreign)
	// The address is taken, and free again when its Service is gone.
	p.send(t, "ADDED", named("b", "", first))
	p.send(t, "DELETED", named("a", first, first))
	p.expect(t, path+"b/status b "+first)
	// It asks for another, and then for one that there is not.
	p.send(t, "MODIFIED", named("b", first, second))
	p.expect(t, path+"b/status b "+second)
	p.send(t, "MODIFIED", named("b", second, "192.0.2.1"))
	p.expect(t, path+"b/status b none")
	// After an error it begins again, with what the list says.
	p.events <- failure
	p.send(t, "ADDED", named("d", "", first))
	p.expect(t, path+"d/status d "+first)

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	if len(p.writes) > 0 {
		t.Errorf("an unexpected write: %s", <-p.writes)
	}
}
