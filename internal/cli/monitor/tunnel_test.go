package monitor

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"      //nolint:staticcheck // deprecated, and the types of the tunnel
	"k8s.io/apimachinery/pkg/util/httpstream/spdy" //nolint:staticcheck // deprecated, and the types of the tunnel
	"k8s.io/client-go/tools/portforward"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// forwarding plays an API server that forwards the port of one pod, in the older of the two ways.
type forwarding struct {
	*testing.T
	monitor string
	mutex   sync.Mutex
	ports   []string
}

func (f *forwarding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/portforward") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"slipway-monitor-0"},
			"spec":{"containers":[{"name":"monitor","ports":[{"name":"metrics","containerPort":8080},{"name":"api","containerPort":1234}]}]},
			"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`)
		return
	}
	if r.Method != http.MethodPost {
		http.Error(w, "no WebSockets here", http.StatusBadRequest)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		f.Error(err)
		return
	}
	streams := make(chan httpstream.Stream, 16)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if connection == nil {
		f.Error("no connection")
		return
	}
	for {
		select {
		case <-connection.CloseChan():
			return
		case stream := <-streams:
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				f.mutex.Lock()
				f.ports = append(f.ports, stream.Headers().Get(corev1.PortHeader))
				f.mutex.Unlock()
				go f.forward(stream)
			}
		}
	}
}

func (f *forwarding) forward(stream httpstream.Stream) {
	to, err := net.Dial("tcp", f.monitor)
	if err != nil {
		f.Error(err)
		return
	}
	go func() { _, _ = io.Copy(to, stream) }()
	_, _ = io.Copy(stream, to)
	_ = stream.Close()
}

// TestTheMonitorIsReachedThroughItsPod: the token goes through the tunnel, and the answer comes back.
func TestTheMonitorIsReachedThroughItsPod(t *testing.T) {
	answers := &monitorAnswers{code: 200, body: &api.Coverage{Complete: true, Kinds: []api.Covered{{Name: "a.example.com", State: "Live"}}}}
	monitor := httptest.NewServer(answers)
	defer monitor.Close()
	f := &forwarding{T: t, monitor: monitor.Listener.Addr().String()}
	cluster := httptest.NewTLSServer(f)
	defer cluster.Close()
	code, stdout, stderr := clitest.Offline(t, addMonitor, "coverage", "--kubeconfig", "/dev/null", "--server", cluster.URL, "--insecure-skip-tls-verify", "--token", "secret-token")
	if code != 0 || !strings.Contains(stdout, "a.example.com") {
		t.Fatalf("%d %s %s", code, stdout, stderr)
	}
	if len(answers.asked) != 1 || answers.asked[0].Header.Get("Authorization") != "Bearer secret-token" || answers.asked[0].Host != "localhost" {
		t.Errorf("asked: %v", answers.asked)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.ports) != 1 || f.ports[0] != "1234" {
		t.Errorf("the ports are %v", f.ports)
	}
}

// silent plays an API server that says nothing until the test ends.
type silent struct{ dialled, end chan struct{} }

func (s silent) Dial(...string) (httpstream.Connection, string, error) {
	close(s.dialled)
	<-s.end
	return nil, "", net.ErrClosed
}

// TestTheTunnelEndsWhileItIsMade: a command that is interrupted does not wait for an API server that says nothing.
func TestTheTunnelEndsWhileItIsMade(t *testing.T) {
	s := silent{make(chan struct{}), make(chan struct{})}
	made := &tunnel{dialer: s}
	answer := make(chan error, 1)
	go func() {
		_, err := made.dial(t.Context(), "tcp", "localhost:80")
		answer <- err
	}()
	<-s.dialled
	closed := make(chan struct{})
	go func() {
		made.close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("it waits for the API server")
	}
	close(s.end)
	if err := <-answer; err == nil {
		t.Error("there is a connection")
	}
}
