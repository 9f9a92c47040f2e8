package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// watch ends one direction of a stream of HTTP/2 when a call takes too long in which it waits
// for the client. Deadlines of net/http would go on while it waits for the backend.
type watch struct {
	cut func() // makes the call return

	mu      sync.Mutex // held while it is cut, so that the stream does not end meanwhile
	timeout time.Duration
	timer   *time.Timer // nil before the first call
	running bool        // the timer runs, for the call under way
	stale   int         // how often it went off for a call that had returned
	late    bool        // a call took too long
}

// begin gives a call its time. 0 is no bound.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(w.timeout)
}

// beginWithin is begin for a call that has to keep within what is allowed, too.
func (w *watch) beginWithin(allowed *allowance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(allowed.bound(w.timeout))
}

// start is called with mu held.
func (w *watch) start(timeout time.Duration) {
	if timeout <= 0 {
		return
	}
	w.running = true
	if w.timer == nil {
		w.timer = time.AfterFunc(timeout, w.fire)
		return
	}
	w.timer.Reset(timeout)
}

// end is when the call has returned.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
}

// stop is called with mu held.
func (w *watch) stop() {
	if w.running && !w.timer.Stop() {
		w.stale++
	}
	w.running = false
}

// lift gives every call as long as it likes.
func (w *watch) lift() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timeout = 0
	w.stop()
}

func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stale > 0 {
		w.stale--
		return
	}
	w.running, w.late = false, true
	w.cut()
}

// wasLate reports whether a call took too long.
func (w *watch) wasLate() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late
}

// streamBody is the body of a request of HTTP/2, which must keep coming.
type streamBody struct {
	watch

	body    io.Reader
	clock   clock.PassiveClock
	allowed allowance // guarded by mu
}

// Read reads what comes in time.
func (b *streamBody) Read(p []byte) (int, error) {
	began := b.clock.Now()
	b.beginWithin(&b.allowed)
	n, err := b.body.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stop()
	b.allowed.add(n, b.clock.Since(began))
	return n, err
}

// liftRate bounds only each piece from now on, that of a call under way too.
func (b *streamBody) liftRate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed.lifted = true
	if b.running {
		b.stop()
		b.start(b.timeout)
	}
}

// clientIdle is how long the client may send nothing of its body; 0: as long as it likes.
func (e *exchange) clientIdle(backend *table.Backend) time.Duration {
	switch {
	case backend.Protocol == table.ProtocolGRPC:
		return 0
	case e.route.Timeouts.IdleSet:
		return e.route.Timeouts.Idle
	}
	return e.handler.options.ClientTimeout
}

// backendIdle is how long the backend may send nothing of its response's body.
func (e *exchange) backendIdle(backend *table.Backend) time.Duration {
	switch {
	case backend.Protocol == table.ProtocolGRPC:
		return 0
	case e.route.Timeouts.IdleSet:
		return e.route.Timeouts.Idle
	}
	return e.handler.options.BackendTimeout
}

// takeStream takes the body of a request of HTTP/2.
func (e *exchange) takeStream(control *http.ResponseController) {
	e.stream = &streamBody{
		body: e.r.Body, clock: e.handler.options.Clock, allowed: allowance{grace: e.handler.options.ClientTimeout},
		watch: watch{cut: func() { _ = control.SetReadDeadline(aLongTimeAgo) }},
	}
	e.request.Body = e.stream
}

// boundBody gives the client its time for the pieces of the body.
func (e *exchange) boundBody(timeout time.Duration) {
	switch {
	case e.body != nil:
		e.body.setTimeout(timeout)
	case e.stream != nil:
		e.stream.timeout = timeout // nobody reads yet
	}
}

// liftBounds lets the client be silent: the backend has answered with a stream.
func (e *exchange) liftBounds() {
	if e.body != nil {
		e.body.setTimeout(0)
	}
	if e.stream != nil {
		e.stream.lift()
	}
}

// liftRate lets the client send as slowly as the pieces may come: the backend has answered,
// and the body may be the client's half of a conversation.
func (e *exchange) liftRate() {
	if e.body != nil {
		e.body.liftRate()
	}
	if e.stream != nil {
		e.stream.liftRate()
	}
}

// clientStalled reports whether the client sent nothing of its body for too long.
func (e *exchange) clientStalled() bool {
	return (e.body != nil && e.body.stalled()) || (e.stream != nil && e.stream.wasLate())
}

// write sends a piece of the response, which the client must take in time. Over HTTP/1 a
// deadline sees to that.
func (e *exchange) write(piece []byte) error {
	e.beginTaking()
	defer e.endTaking()
	n, err := e.w.Write(piece)
	e.sent += int64(n)
	return err
}

// flush sends what is held back.
func (e *exchange) flush() {
	flusher, ok := e.w.(http.Flusher)
	if !ok {
		return
	}
	e.beginTaking()
	defer e.endTaking()
	flusher.Flush()
}

func (e *exchange) beginTaking() {
	if e.r.ProtoMajor == 2 {
		e.taking.timeout = e.handler.options.ClientTimeout // no call is under way
		e.taking.begin()
	}
}

func (e *exchange) endTaking() {
	if e.r.ProtoMajor == 2 {
		e.taking.end()
	}
}

// cutStream ends the stream whose client takes nothing.
func (e *exchange) cutStream() {
	_ = http.NewResponseController(e.w).SetWriteDeadline(aLongTimeAgo)
}

// sendRest sends what net/http holds back of a body, and would send when the handler has
// returned: the client takes it while the request still counts as under way.
//
// The end of the stream becomes a frame of its own by that. Clients of gRPC would take an
// answer that is not gRPC for a broken one then, and could not tell a 503 that is worth a
// retry. So what they get is sent by net/http, in the short time that boundEnd gives it.
func (e *exchange) sendRest() {
	if e.sent > 0 && !e.aborted && !e.saysGRPC() {
		e.flush()
	}
}

// grpcRest is the time for what net/http sends to a client of gRPC when the handler has
// returned, and the request is no longer counted.
const grpcRest = 5 * time.Second

// boundEnd bounds the time of what net/http sends of a stream when its handler has returned.
func (e *exchange) boundEnd() {
	if e.r.ProtoMajor != 2 || e.sent == 0 || e.aborted {
		return
	}
	timeout := e.handler.options.ClientTimeout
	if e.saysGRPC() {
		timeout = min(timeout, grpcRest)
	}
	_ = http.NewResponseController(e.w).SetWriteDeadline(e.handler.options.Clock.Now().Add(timeout))
}

// saysGRPC reports whether the client says that it speaks gRPC. Anybody can.
func (e *exchange) saysGRPC() bool {
	return strings.HasPrefix(e.r.Header.Get("Content-Type"), "application/grpc")
}
