package exchange

import (
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
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

// takeStream wraps the body of an HTTP/2 request.
func (e *Exchange) takeStream(control *http.ResponseController) {
	e.Body.http2 = &streamBody{
		body: e.r.Body, clock: e.Clock, allowed: allowance{grace: e.ClientTimeout},
		watch: watch{cut: func() { _ = control.SetReadDeadline(aLongTimeAgo) }},
	}
	e.Outgoing.Body = e.Body.http2
}

// BoundBody sets the timeout of each read of the body.
func (e *Exchange) BoundBody(timeout time.Duration) {
	switch {
	case e.Body.http1 != nil:
		e.Body.http1.setTimeout(timeout)
	case e.Body.http2 != nil:
		e.Body.http2.timeout = timeout // no read is running yet
	}
}

// LiftBounds removes all bounds on the body: the backend has answered with a stream, so the
// client may be silent.
func (e *Exchange) LiftBounds() {
	if e.Body.http1 != nil {
		e.Body.http1.setTimeout(0)
	}
	if e.Body.http2 != nil {
		e.Body.http2.lift()
	}
}

// LiftRate removes the bound for the whole body. The backend has answered, so the body may
// be the client's part of a slow conversation.
func (e *Exchange) LiftRate() {
	if e.Body.http1 != nil {
		e.Body.http1.liftRate()
	}
	if e.Body.http2 != nil {
		e.Body.http2.liftRate()
	}
}

// ClientStalled reports whether the client sent nothing of its body for too long.
func (e *Exchange) ClientStalled() bool {
	return (e.Body.http1 != nil && e.Body.http1.stalled()) || (e.Body.http2 != nil && e.Body.http2.wasLate())
}

// Write sends a piece of the response. The client must take it in time.
func (e *Exchange) Write(piece []byte) (int, error) {
	e.beginTaking()
	defer e.endTaking()
	n, err := e.w.Write(piece)
	e.Answer.Sent += int64(n)
	return n, err
}

// Flush sends what net/http has buffered.
func (e *Exchange) Flush() {
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
func (e *Exchange) beginTaking() {
	if e.r.ProtoMajor != 2 {
		e.boundWrite()
		return
	}
	e.Answer.taking.timeout = e.ClientTimeout // no call is running
	e.Answer.taking.begin()
}

func (e *Exchange) endTaking() {
	if e.r.ProtoMajor == 2 {
		e.Answer.taking.end()
	}
}

// cutStream ends the stream of a client that takes nothing.
func (e *Exchange) cutStream() {
	_ = http.NewResponseController(e.w).SetWriteDeadline(aLongTimeAgo)
}

// SendRest flushes the rest of a body that net/http would send after the handler has
// returned. So the request is still counted while the client takes it.
//
// The flush makes the end of the stream a frame of its own. For gRPC clients that would be
// wrong: they would treat an answer that is not gRPC as broken, and could not see that a
// 503 may be retried. So for them net/http sends the rest, in the short time that BoundEnd
// allows.
func (e *Exchange) SendRest() {
	if e.Answer.Sent > 0 && !e.Answer.Aborted && !e.saysGRPC() {
		e.Flush()
	}
}

// grpcRest bounds what net/http sends to a gRPC client after the handler has returned. By
// then the request is no longer counted.
const grpcRest = 5 * time.Second

// BoundEnd bounds how long net/http may send the rest of a response after the handler has
// returned.
func (e *Exchange) BoundEnd() {
	if e.r.ProtoMajor != 2 {
		if e.Answer.Tunnel == nil {
			e.boundWrite()
		}
		return
	}
	if e.Answer.Sent == 0 || e.Answer.Aborted {
		return
	}
	timeout := e.ClientTimeout
	if e.saysGRPC() {
		timeout = min(timeout, grpcRest)
	}
	_ = http.NewResponseController(e.w).SetWriteDeadline(e.Clock.Now().Add(timeout))
}
