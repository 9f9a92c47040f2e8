package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

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
	// Before is done before the write is passed on.
	Before func(Write)
}

// Write is one write that the operator tried.
type Write struct {
	requests.Kind
	// Path is the address: it names the object.
	Path string
	// Home is that of the gate.
	Home string
	// At is when it was sent.
	At time.Time
	// Code is the status code of the answer, 0 as long as there is none.
	Code int
	// Body is what was sent, and Manager the field manager that states it.
	Body    []byte
	Manager string
}

// Target names what is written, whatever namespace it is in: an object, or its
// subresource. NAMESPACE stands for Home in the rest of it.
func (w Write) Target() string {
	if w.Home == "" || w.Home == w.Namespace {
		path := strings.Replace(w.Path, "/namespaces/"+w.Namespace+"/", "/", 1)
		return neutral(path, w.Home)
	}
	return neutral(w.Path, w.Home)
}

// neutral is a path that is the same in every run.
func neutral(path, home string) string {
	if home == "" {
		return path
	}
	return strings.ReplaceAll(path, home, "NAMESPACE")
}

// Refused reports whether the write was answered, and not accepted.
func (w Write) Refused() bool { return w.Code >= http.StatusBadRequest }

// Accepted reports whether the write was answered, and accepted.
func (w Write) Accepted() bool { return w.Code > 0 && !w.Refused() }

// Plan says what goes wrong at which write. Writes are counted from 1.
type Plan map[int]Fault

// Count is how many faults the plan injects.
func (p Plan) Count() int {
	writes := 0
	for _, f := range p {
		writes += max(1, f.Times)
	}
	return writes
}

// at returns the fault to inject at a write, if any.
func (p Plan) at(number int) (Fault, bool) {
	for first, f := range p {
		if number >= first && number < first+max(1, f.Times) {
			return f, true
		}
	}
	return Fault{}, false
}

// Gate passes requests of one operator after the other on to the API server.
type Gate struct {
	// Home is the namespace of the run. Objects that are in none, or in another one, may be named after it. Default: there is
	// nothing of that kind.
	Home string

	mu       sync.Mutex
	writes   []Write
	injected int
	// plan counts from the writes before.
	plan   Plan
	before int
	// inFlight is how many writes are on the way, and held how many of them a fault keeps back.
	inFlight, held int
	// life counts the operators. Those that act together count as one. Requests of earlier
	// ones, which have crashed, are dropped.
	life    int
	crashes int
	// wait is until when an answer has asked the operator to wait.
	wait time.Time
}

// NewGate returns a gate that injects the faults of a plan.
func NewGate(plan Plan) *Gate { return &Gate{plan: plan} }

// Begin counts writes from 1 again. From now on this plan says what goes wrong.
func (g *Gate) Begin(plan Plan) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.plan, g.before = plan, len(g.writes)
}

// Crashes is how often an operator has crashed. The caller has to start the next one.
func (g *Gate) Crashes() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.crashes
}

// InFlight is how many writes are on the way.
func (g *Gate) InFlight() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inFlight
}

// Holds reports whether a fault keeps a write back, for as long as something is done before it.
func (g *Gate) Holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held > 0
}

// hold does something while a write is kept back.
func (g *Gate) hold(w Write, before func(Write)) {
	count := func(more int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.held += more
	}
	count(1)
	defer count(-1)
	before(w)
}

// AskedToWait reports whether the operator has been asked to wait, and still is.
func (g *Gate) AskedToWait() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.wait)
}

// Injected is how many faults were injected so far.
func (g *Gate) Injected() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.injected
}

// Written is how many writes were tried so far.
func (g *Gate) Written() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.writes)
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
	write, err := newWrite(kind, request)
	if err != nil {
		return nil, err
	}
	write.Home = t.gate.Home
	number, fault, alive := t.gate.write(t.life, write)
	if !alive {
		return nil, errCrashed
	}
	code := 0
	defer func() { t.gate.answered(number, code) }()
	if fault.Before != nil {
		t.gate.hold(write, fault.Before)
	}
	if fault.Reject != nil {
		code = int(fault.Reject.Code)
		t.gate.askToWait(retryAfter(fault.Reject))
		return rejected(request, fault.Reject)
	}
	response, err := t.next.RoundTrip(request)
	if err == nil {
		code = response.StatusCode
	}
	if err != nil || !fault.Crash && !fault.LoseAnswer {
		return response, err
	}
	if fault.Crash {
		t.gate.crash(t.life)
	}
	return nil, errors.Join(io.ErrUnexpectedEOF, response.Body.Close())
}

func newWrite(kind requests.Kind, request *http.Request) (Write, error) {
	write := Write{Kind: kind, Path: request.URL.Path, Manager: request.URL.Query().Get("fieldManager"), At: time.Now()}
	if request.GetBody == nil {
		return write, nil
	}
	body, err := request.GetBody()
	if err != nil {
		return write, err
	}
	write.Body, err = io.ReadAll(body)
	return write, err
}

func (t transport) dead() bool {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	return t.life != t.gate.life
}

// write notes a write and returns its number, what happens to it, and whether the
// operator that sends it is alive.
func (g *Gate) write(life int, w Write) (number int, f Fault, alive bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if life != g.life {
		return 0, Fault{}, false
	}
	g.writes = append(g.writes, w)
	g.inFlight++
	f, inject := g.plan.at(len(g.writes) - g.before)
	if inject {
		g.injected++
	}
	return len(g.writes), f, true
}

// answered notes the answer to a write, 0 for none.
func (g *Gate) answered(number, code int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	g.writes[number-1].Code = code
}

// Crash ends the operator between two writes, as a fault with Crash does right after one.
func (g *Gate) Crash() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.life++
	g.crashes++
}

// crash ends the operator of a life, unless it has ended already.
func (g *Gate) crash(life int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if life == g.life {
		g.life++
		g.crashes++
	}
}

func (g *Gate) askToWait(during time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(during); until.After(g.wait) {
		g.wait = until
	}
}

// retryAfter is how long an answer asks to wait.
func retryAfter(status *metav1.Status) time.Duration {
	if status.Details == nil {
		return 0
	}
	return time.Duration(status.Details.RetryAfterSeconds) * time.Second
}

// rejected is the API server's answer to a write that it does not accept.
func rejected(request *http.Request, with *metav1.Status) (*http.Response, error) {
	status := *with // others may be rejected with the same
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
	if wait := retryAfter(with); wait > 0 {
		header.Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
	}
	return &http.Response{
		StatusCode: int(status.Code), Status: http.StatusText(int(status.Code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
	}, nil
}
