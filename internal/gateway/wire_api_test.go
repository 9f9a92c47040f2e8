//go:build apitest

package gateway

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// wire is the connection to the API server. A test can break it and repair it. It records
// the requests.
type wire struct {
	t       testing.TB
	address string
	server  string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	silenced chan struct{}   // closed when bytes pass again; nil while they pass
	asked    map[string]bool // method, path, query of the selector, status
}

func newWire(t testing.TB, server string) *wire {
	t.Helper()
	w := &wire{t: t, server: server, open: map[net.Conn]bool{}, asked: map[string]bool{}, address: "127.0.0.1:0"}
	w.mend()
	t.Cleanup(w.cut)
	return w
}

// mend allows connections again.
func (w *wire) mend() {
	w.t.Helper()
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener, w.address = listener, listener.Addr().String()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(near)
		}
	}()
}

func (w *wire) carry(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", w.server)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer far.Close()
	w.mu.Lock()
	w.open[near] = true
	w.mu.Unlock()
	go func() {
		_, _ = io.Copy(far, &gate{w, near})
		_ = far.Close()
	}()
	_, _ = io.Copy(near, &gate{w, far})
	w.mu.Lock()
	delete(w.open, near)
	w.mu.Unlock()
}

// gate is one direction of a connection.
type gate struct {
	wire *wire
	from net.Conn
}

// Read waits while the wire is silent.
func (g *gate) Read(p []byte) (int, error) {
	n, err := g.from.Read(p)
	g.wire.mu.Lock()
	silenced := g.wire.silenced
	g.wire.mu.Unlock()
	if silenced != nil {
		<-silenced
	}
	return n, err
}

// silence keeps every connection open, but passes no bytes until undo is called.
func (w *wire) silence() (undo func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silenced = make(chan struct{})
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		close(w.silenced)
		w.silenced = nil
	})
}

// cut closes all connections and allows none.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.listener.Close()
	for near := range w.open {
		_ = near.Close()
	}
}

// record wraps a transport to record its requests.
func (w *wire) record(next http.RoundTripper) http.RoundTripper { return &recorder{w, next} }

type recorder struct {
	wire *wire
	next http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = (*recorder)(nil)

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil {
		r.wire.mu.Lock()
		defer r.wire.mu.Unlock()
		r.wire.asked[request.Method+" "+request.URL.Path+" "+request.URL.Query().Get("fieldSelector")+" "+response.Status] = true
	}
	return response, err
}

func (r *recorder) WrappedRoundTripper() http.RoundTripper { return r.next }

// questions returns the recorded requests with their statuses, without duplicates.
func (w *wire) questions() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]bool, len(w.asked))
	for question := range w.asked {
		all[question] = true
	}
	return all
}
