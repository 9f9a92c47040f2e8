package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// watch bounds calls that wait for the client of an HTTP/2 stream. When a call takes too
// long, it ends one direction of the stream. net/http's deadlines cannot be used, because
// they also run while the gateway waits for the backend.
type watch struct {
	cut func() // makes the call return

	mu      sync.Mutex // held during cut, so that the stream does not end meanwhile
	timeout time.Duration
	timer   *time.Timer // nil before the first call
	running bool        // the timer runs for the current call
	stale   int         // how often the timer fired for a call that had returned
	late    bool        // a call took too long
}

// begin starts the timer for a call. A timeout of 0 means no bound.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(w.timeout)
}

// beginWithin is begin for a call that the allowance bounds too.
func (w *watch) beginWithin(allowed *allowance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(allowed.bound(w.timeout))
}

// start needs mu held.
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

// end is called when the call has returned.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
}

// stop needs mu held.
func (w *watch) stop() {
	if w.running && !w.timer.Stop() {
		w.stale++
	}
	w.running = false
}

// lift removes the bound from all calls.
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

// streamBody is the body of an HTTP/2 request. It bounds how long the client may send
// nothing.
type streamBody struct {
	watch

	body    io.Reader
	clock   clock.PassiveClock
	allowed allowance // guarded by mu
}

// Read reads the next bytes, within the timeout.
func (b *streamBody) Read(p []byte) (n int, err error) {
	began := b.clock.Now()
	b.beginWithin(&b.allowed)
	defer func() { // also after a panic: the timer must not run any more
		b.mu.Lock()
		defer b.mu.Unlock()
		b.stop()
		b.allowed.add(n, b.clock.Since(began))
	}()
	return b.body.Read(p)
}

// liftRate removes the bound for the whole body. The bound of each read stays, also for the
// current one.
func (b *streamBody) liftRate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed.lifted = true
	if b.running {
		b.stop()
		b.start(b.timeout)
	}
}

// clientIdle bounds how long the client may send nothing of its body. 0 means no bound.
func (e *exchange) clientIdle(backend *model.Backend) time.Duration {
	switch {
	case backend.Protocol == model.ProtocolGRPC:
		return 0
	case e.route.Timeouts.IdleSet:
		return e.route.Timeouts.Idle
	}
	return e.handler.options.ClientTimeout
}

// backendIdle bounds how long the backend may send nothing of its response's body.
func (e *exchange) backendIdle(backend *model.Backend) time.Duration {
	switch {
	case backend.Protocol == model.ProtocolGRPC:
		return 0
	case e.route.Timeouts.IdleSet:
		return e.route.Timeouts.Idle
	case e.route.Timeouts.Patient:
		return 0
	}
	return e.handler.options.BackendTimeout
}

// takeStream wraps the body of an HTTP/2 request.
func (e *exchange) takeStream(control *http.ResponseController) {
	e.body.http2 = &streamBody{
		body: e.r.Body, clock: e.handler.options.Clock, allowed: allowance{grace: e.handler.options.ClientTimeout},
		watch: watch{cut: func() { _ = control.SetReadDeadline(aLongTimeAgo) }},
	}
	e.request.Body = e.body.http2
}

// boundBody sets the timeout of each read of the body.
func (e *exchange) boundBody(timeout time.Duration) {
	switch {
	case e.body.http1 != nil:
		e.body.http1.setTimeout(timeout)
	case e.body.http2 != nil:
		e.body.http2.timeout = timeout // no read is running yet
	}
}

// liftBounds removes all bounds on the body: the backend has answered with a stream, so the
// client may be silent.
func (e *exchange) liftBounds() {
	clientConnOf(e.r).stream(true)
	if e.body.http1 != nil {
		e.body.http1.setTimeout(0)
	}
	if e.body.http2 != nil {
		e.body.http2.lift()
	}
}

// liftRate removes the bound for the whole body. The backend has answered, so the body may
// be the client's part of a slow conversation.
func (e *exchange) liftRate() {
	if e.body.http1 != nil {
		e.body.http1.liftRate()
	}
	if e.body.http2 != nil {
		e.body.http2.liftRate()
	}
}

// clientStalled reports whether the client sent nothing of its body for too long.
func (e *exchange) clientStalled() bool {
	return (e.body.http1 != nil && e.body.http1.stalled()) || (e.body.http2 != nil && e.body.http2.wasLate())
}

// write sends a piece of the response. The client must take it in time.
func (e *exchange) write(piece []byte) (int, error) {
	e.beginTaking()
	defer e.endTaking()
	n, err := e.w.Write(piece)
	e.answer.sent += int64(n)
	return n, err
}

// flush sends what net/http has buffered.
func (e *exchange) flush() {
	flusher, ok := e.w.(http.Flusher)
	if !ok {
		return
	}
	e.beginTaking()
	defer e.endTaking()
	flusher.Flush()
}

// beginTaking bounds the call that follows, which sends something to the client. For HTTP/1 a write deadline does that. It stays until
// the next one: nothing is sent without one.
func (e *exchange) beginTaking() {
	if e.r.ProtoMajor != 2 {
		e.boundWrite()
		return
	}
	e.answer.taking.timeout = e.handler.options.ClientTimeout // no call is running
	e.answer.taking.begin()
}

func (e *exchange) endTaking() {
	if e.r.ProtoMajor == 2 {
		e.answer.taking.end()
	}
}

// cutStream ends the stream of a client that takes nothing.
func (e *exchange) cutStream() {
	_ = http.NewResponseController(e.w).SetWriteDeadline(aLongTimeAgo)
}

// sendRest flushes the rest of a body that net/http would send after the handler has
// returned. So the request is still counted while the client takes it.
//
// The flush makes the end of the stream a frame of its own. For gRPC clients that would be
// wrong: they would treat an answer that is not gRPC as broken, and could not see that a
// 503 may be retried. So for them net/http sends the rest, in the short time that boundEnd
// allows.
func (e *exchange) sendRest() {
	if e.answer.sent > 0 && !e.answer.aborted && !e.saysGRPC() {
		e.flush()
	}
}

// grpcRest bounds what net/http sends to a gRPC client after the handler has returned. By
// then the request is no longer counted.
const grpcRest = 5 * time.Second

// boundEnd bounds how long net/http may send the rest of a response after the handler has
// returned.
func (e *exchange) boundEnd() {
	if e.r.ProtoMajor != 2 {
		if e.answer.tunneled == nil {
			e.boundWrite()
		}
		return
	}
	if e.answer.sent == 0 || e.answer.aborted {
		return
	}
	timeout := e.handler.options.ClientTimeout
	if e.saysGRPC() {
		timeout = min(timeout, grpcRest)
	}
	_ = http.NewResponseController(e.w).SetWriteDeadline(e.handler.options.Clock.Now().Add(timeout))
}

// saysGRPC reports whether the client claims to speak gRPC. Any client can claim it.
func (e *exchange) saysGRPC() bool {
	return strings.HasPrefix(e.r.Header.Get("Content-Type"), "application/grpc")
}
