package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// Fault is what goes wrong at one write.
type Fault struct {
	// Name says it in a word, for the table.
	Name string
	// Crash ends the operator right after the write was committed: nothing that the old
	// operator still sends gets through.
	Crash bool
	// LoseAnswer commits the write, and breaks the connection before the answer.
	LoseAnswer bool
	// Reject answers with this status instead of passing the write on.
	Reject *metav1.Status
	// Times is how many writes in a row are rejected. Default 1.
	Times int
}

// Write is one write that the operator tried.
type Write struct {
	requests.Kind
	// Path is the address: it names the object.
	Path string
}

// Gate passes requests of one operator after the other on to the API server.
type Gate struct {
	mu     sync.Mutex
	at     int
	fault  Fault
	writes []Write
	struck bool
	// life is the operator that is alive; requests of earlier ones are dropped.
	life int
	// crashed is closed when the operator has to be restarted.
	crashed chan struct{}
}

// NewGate returns a gate that does what fault says at the write with that number,
// counted from 1. At 0 it does nothing.
func NewGate(at int, fault Fault) *Gate {
	return &Gate{at: at, fault: fault, crashed: make(chan struct{})}
}

// Crashed is closed when the operator has crashed and has to be started again.
func (g *Gate) Crashed() <-chan struct{} { return g.crashed }

// Struck tells whether the fault has happened.
func (g *Gate) Struck() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.struck
}

// Writes returns what was written, and tried, so far.
func (g *Gate) Writes() []Write {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Write(nil), g.writes...)
}

// Wrap puts the gate into the way of a new operator.
func (g *Gate) Wrap(config *rest.Config) {
	g.mu.Lock()
	g.life++
	life := g.life
	g.mu.Unlock()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport{gate: g, life: life, next: next}
	})
}

type transport struct {
	gate *Gate
	life int
	next http.RoundTripper
}

var errCrashed = errors.New("the operator has crashed")

// RoundTrip passes a request on, unless the fault says otherwise.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	kind := requests.KindOf(request)
	if class := kind.Class(); class != requests.Children && class != requests.Status {
		if t.dead() {
			return nil, errCrashed
		}
		return t.next.RoundTrip(request)
	}
	strikes, alive := t.gate.write(t.life, Write{Kind: kind, Path: request.URL.Path})
	switch {
	case !alive:
		return nil, errCrashed
	case strikes && t.gate.fault.Reject != nil:
		return rejected(request, t.gate.fault.Reject)
	}
	response, err := t.next.RoundTrip(request)
	if !strikes || err != nil {
		return response, err
	}
	if t.gate.fault.Crash {
		t.gate.crash()
	}
	return nil, errors.Join(io.ErrUnexpectedEOF, response.Body.Close())
}

func (t transport) dead() bool {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	return t.life != t.gate.life
}

// write notes a write and tells whether the fault strikes it, and whether the operator
// that sends it is alive.
func (g *Gate) write(life int, w Write) (strikes, alive bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if life != g.life {
		return false, false
	}
	g.writes = append(g.writes, w)
	times := max(1, g.fault.Times)
	strikes = g.at > 0 && len(g.writes) >= g.at && len(g.writes) < g.at+times
	g.struck = g.struck || strikes
	return strikes, true
}

func (g *Gate) crash() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.life++
	close(g.crashed)
}

// rejected is the API server's answer to a write that it does not accept.
func rejected(request *http.Request, status *metav1.Status) (*http.Response, error) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	status.Status = metav1.StatusFailure
	body, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	if request.Body != nil {
		if err := request.Body.Close(); err != nil {
			return nil, err
		}
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return &http.Response{
		StatusCode: int(status.Code), Status: http.StatusText(int(status.Code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
	}, nil
}
