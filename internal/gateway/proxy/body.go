package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

const (
	// maxDrain bounds how much of an unread body is read and thrown away, so that the
	// connection can carry another request. drainTimeout bounds the time for it.
	maxDrain     = 64 << 10
	drainTimeout = time.Second
)

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

// bodyBound is how many bytes the body of a request may have.
type bodyBound int64

// admit refuses a body that is declared too large. It also bounds a body whose size is
// not known yet.
func (b bodyBound) admit(e *exchange) bool {
	if e.r.ContentLength > int64(b) {
		return e.refuse(http.StatusRequestEntityTooLarge, "body_too_large")
	}
	// MaxBytesReader gets no ResponseWriter. It would write into the response header, which
	// may be sent already.
	switch {
	case e.r.ContentLength >= 0:
	case e.body.http1 != nil:
		e.body.http1.body = http.MaxBytesReader(nil, e.r.Body, int64(b))
	default:
		e.r.Body = http.MaxBytesReader(nil, e.r.Body, int64(b))
	}
	return true
}

// takeBody wraps the body of an HTTP/1 request, if there is one.
func (e *exchange) takeBody() {
	if e.r.ProtoMajor != 1 || e.r.Body == nil || e.r.Body == http.NoBody || e.r.ContentLength == 0 {
		return
	}
	e.body.http1 = &clientBody{
		pace: e.pace(http.NewResponseController(e.w)), body: e.r.Body, length: e.r.ContentLength,
		expected: e.r.ProtoMinor > 0 && e.r.Header["Expect"] != nil, ask: e.askForBody,
		allowed: allowance{grace: e.handler.options.ClientTimeout},
	}
}

// askForBody sends 100 Continue. net/http would send it at the first read of the body. But
// at the same moment the backend may send an informational response, which must also be
// forwarded.
func (e *exchange) askForBody() {
	e.answer.heads.Lock()
	defer e.answer.heads.Unlock()
	if !e.answer.begun {
		e.writeHint(http.StatusContinue)
	}
}

// beginAnswer marks that the final response has begun. From now on the response header
// belongs to the caller.
func (e *exchange) beginAnswer() {
	e.answer.heads.Lock()
	defer e.answer.heads.Unlock()
	e.answer.begun = true
}

// lastOnConnection reports whether the connection must close after the answer, so that the
// bytes after the request cannot be taken for another request. That is so if the body was
// not read to its end without an error, or if another server could see the end of the body
// elsewhere.
//
// A chunked request may also have had a length, and an HTTP/1.0 request a
// Transfer-Encoding. net/http does not report either (RFC 9112, 6.1). A client that asked
// for another protocol may speak it already.
func (e *exchange) lastOnConnection(status int) bool {
	if e.r.ProtoMajor != 1 {
		return false
	}
	return e.r.ProtoMinor == 0 || len(e.r.TransferEncoding) > 0 || (e.body.http1 != nil && !e.body.http1.whole()) ||
		e.r.Method == http.MethodConnect || (status != http.StatusSwitchingProtocols && e.asksForProtocol())
}

// finishConnection makes sure that no further bytes of the connection are read as this
// request's body or as another request.
func (e *exchange) finishConnection() {
	if conn := clientConnOf(e.r); conn != nil {
		conn.finish()
	}
}
