package exchange

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/gateway/whole"
)

const (
	// maxDrain bounds how much of an unread body is read and thrown away, so that the
	// connection can carry another request. drainTimeout bounds the time for it.
	maxDrain     = 64 << 10
	drainTimeout = time.Second
)

// unbounded is a deadline that is none, for reads of a body that have no bound.
const unbounded time.Duration = 1 << 62

// leastBodyRate is the least number of bytes per second that a client must send of a body.
// It is an average over the time in which the gateway waits for the client. ASP.NET Core's
// Kestrel requires 240 (MinRequestBodyDataRate).
const leastBodyRate = 250

// allowance bounds how long the gateway waits for a whole body. The bound is the timeout of
// one read, and at least the grace. It grows with each byte that the client has sent.
// Without it, a client that sends a byte now and then would keep a connection to a backend.
type allowance struct {
	grace  time.Duration
	waited time.Duration
	read   int64
	lifted bool // no bound for the whole body, only for each read
}

func (a *allowance) add(read int, waited time.Duration) {
	a.read += int64(read)
	a.waited += waited
}

// bound returns the timeout of the next read: that of a single read (0: no bound), or what
// is left for the whole body.
func (a *allowance) bound(piece time.Duration) time.Duration {
	if piece <= 0 || a.lifted {
		return max(piece, 0)
	}
	bought := time.Duration(min(a.read, 1<<40)) * (time.Second / leastBodyRate)
	return min(piece, max(max(a.grace, piece)+bought-a.waited, time.Nanosecond))
}

// clientBody is the body of an HTTP/1 request. It bounds how long the client may send
// nothing, and records whether the body was read to its end. Only then may the following
// bytes be another request.
type clientBody struct {
	pace

	body     io.Reader
	length   int64  // -1 if it is unknown
	expected bool   // the client sent Expect: 100-continue
	ask      func() // sends 100 Continue

	mu      sync.Mutex // guards the fields below and the read deadline
	allowed allowance
	began   time.Time // when the current read began
	until   time.Time // when the current read must end
	late    bool      // a read did not end in time
	stopped bool
	ended   bool // the body was read to its end
	failed  bool // the body cannot be read to its end any more
}

// Read reads the next bytes, within the timeout.
func (b *clientBody) Read(p []byte) (int, error) {
	if b.whole() { // net/http may read from the connection itself now
		return 0, io.EOF
	}
	if b.expected {
		b.expected = false
		b.ask()
	}
	b.begin(0)
	returned := false
	defer func() {
		if !returned { // a panic: what was read is not known
			b.note(0, panics.ErrPanicked)
		}
	}()
	n, err := b.body.Read(p)
	returned = true
	b.note(n, err)
	return n, err
}

// begin sets the deadline of a read. most bounds its timeout, unless it is 0.
func (b *clientBody) begin(most time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began = b.clock.Now()
	timeout := b.allowed.bound(b.timeout)
	if most > 0 && (timeout <= 0 || most < timeout) {
		timeout = most
	}
	b.setDeadline(timeout)
	if b.stopped {
		_ = b.control.SetReadDeadline(aLongTimeAgo)
	}
}

// setTimeout changes the timeout of each read, also of the current one. 0 means no bound.
func (b *clientBody) setTimeout(timeout time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timeout = timeout; b.until.IsZero() || b.stopped || b.ended || b.failed {
		return
	}
	b.setDeadline(b.allowed.bound(timeout))
}

// liftRate removes the bound for the whole body. The bound of each read stays, also for the
// current one.
func (b *clientBody) liftRate() {
	b.mu.Lock()
	b.allowed.lifted = true
	timeout := b.timeout
	b.mu.Unlock()
	b.setTimeout(timeout)
}

// setDeadline needs mu held.
func (b *clientBody) setDeadline(timeout time.Duration) {
	b.until = time.Time{}
	if timeout > 0 {
		b.until = b.clock.Now().Add(timeout)
		_ = b.control.SetReadDeadline(b.until)
		return
	}
	_ = b.control.SetReadDeadline(b.clock.Now().Add(unbounded)) // a deadline, because net/http reads on without one
}

// note records the result of a read.
func (b *clientBody) note(n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed.add(n, b.clock.Since(b.began))
	switch {
	case errors.Is(err, io.EOF):
		b.ended = !b.failed
		_ = b.control.SetReadDeadline(time.Time{}) // net/http reads on, to detect that the client leaves
	case err != nil:
		b.failed = true
		b.late = b.late || (!b.until.IsZero() && !b.clock.Now().Before(b.until))
	}
}

// stalled reports whether the client sent nothing for too long. The error alone does not
// show it. For net/http a timeout looks like a client that has left, and an incomplete
// trailer looks malformed.
func (b *clientBody) stalled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.late
}

// whole reports whether the body has been read to its end, and without an error.
func (b *clientBody) whole() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// stop makes the current Read and all later ones return an error.
func (b *clientBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if !b.ended {
		_ = b.control.SetReadDeadline(aLongTimeAgo)
	}
}

// wasStopped reports whether the body was not read to its end because stop was called. For
// net/http that looks like a client that has left.
func (b *clientBody) wasStopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped && !b.ended
}

// drain reads the rest of the body if it is short and comes soon. No other goroutine may
// read the body.
func (b *clientBody) drain() {
	if b.expected || !b.drainable() {
		return
	}
	b.begin(drainTimeout)
	n, err := io.Copy(io.Discard, b.body)
	if err == nil {
		err = io.EOF
	}
	b.note(int(n), err)
}

func (b *clientBody) drainable() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.ended && !b.failed && !b.stopped && b.length >= 0 && b.length-b.allowed.read <= maxDrain
}

// Body is the body of a request.
type Body struct {
	http1 *clientBody // of an HTTP/1 request; nil if there is none
	http2 *streamBody // of an HTTP/2 request to a backend

	// Whole is the whole body, if IsWhole: what a Service was shown.
	Whole   whole.Bytes
	IsWhole bool
}

// AddBody adds the body of the client to the request for the backend.
func (e *Exchange) AddBody() {
	request := &e.Outgoing
	request.Body, request.ContentLength = e.r.Body, e.r.ContentLength
	control := http.NewResponseController(e.w)
	request.StopBody = func() { _ = control.SetReadDeadline(aLongTimeAgo) }
	if e.r.ProtoMajor == 2 {
		e.takeStream(control)
	}
	if e.Body.http1 != nil {
		request.Body, request.StopBody = e.Body.http1, e.Body.http1.stop
		request.ExpectContinue = e.Body.http1.expected // net/http accepts no other expectation
	}
	// The body may still come in while the response is sent.
	if e.r.ProtoMajor == 1 && (e.r.ContentLength < 0 || request.ExpectContinue || e.r.ContentLength > upstream.MaxReplay) {
		_ = control.EnableFullDuplex()
	}
}

// SetBody gives a request a body that is all there.
func SetBody(request *upstream.Request, body []byte) {
	if len(body) == 0 {
		return
	}
	request.Body, request.ContentLength, request.StopBody = bytes.NewReader(body), int64(len(body)), func() {}
}

// LimitBody refuses a body that is declared too large. It also bounds a body whose size is
// not known yet.
func (e *Exchange) LimitBody(most int64) bool {
	if e.r.ContentLength > most {
		return e.Refuse(http.StatusRequestEntityTooLarge, "body_too_large")
	}
	// MaxBytesReader gets no ResponseWriter. It would write into the response header, which
	// may be sent already.
	switch {
	case e.r.ContentLength >= 0:
	case e.Body.http1 != nil:
		e.Body.http1.body = http.MaxBytesReader(nil, e.r.Body, most)
	default:
		e.r.Body = http.MaxBytesReader(nil, e.r.Body, most)
	}
	return true
}

// WasStopped reports whether the body was not read to its end because nobody wanted it any more.
func (b *Body) WasStopped() bool { return b.http1 != nil && b.http1.wasStopped() }

// IsCut reports whether a body of HTTP/1 was not read to its end. Then no further request can follow it.
func (b *Body) IsCut() bool { return b.http1 != nil && !b.http1.whole() }

// OverHTTP1 reports whether there is a body of HTTP/1.
func (b *Body) OverHTTP1() bool { return b.http1 != nil }

// takeBody wraps the body of an HTTP/1 request, if there is one.
func (e *Exchange) takeBody() {
	if e.r.ProtoMajor != 1 || e.r.Body == nil || e.r.Body == http.NoBody || e.r.ContentLength == 0 {
		return
	}
	e.Body.http1 = &clientBody{
		pace: e.pace(http.NewResponseController(e.w)), body: e.r.Body, length: e.r.ContentLength,
		expected: e.r.ProtoMinor > 0 && e.r.Header["Expect"] != nil, ask: e.askForBody,
		allowed: allowance{grace: e.ClientTimeout},
	}
}

func (e *Exchange) pace(control *http.ResponseController) pace {
	return pace{control: control, clock: e.Clock, timeout: e.ClientTimeout}
}

// pace bounds how long an HTTP/1 client may send nothing of a body. For HTTP/2 a watch does
// that (stream.go).
type pace struct {
	control *http.ResponseController
	clock   clock.PassiveClock
	timeout time.Duration
}

// boundWrite bounds what is written to an HTTP/1 client next. Not even the first bytes of a response always fit into the buffers of the
// kernel: those before them may not have been taken yet. net/http removes the bound after each request.
func (e *Exchange) boundWrite() {
	e.setWriteDeadline(e.Clock.Now().Add(e.ClientTimeout))
}

// setWriteDeadline allocates nothing, also where there are no deadlines.
func (e *Exchange) setWriteDeadline(until time.Time) {
	if to, ok := e.w.(interface{ SetWriteDeadline(until time.Time) error }); ok {
		_ = to.SetWriteDeadline(until)
	}
}
