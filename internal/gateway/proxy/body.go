package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// maxDrain bounds what is read of a body that nobody wants, so that the next request can
	// come on its connection, and drainTimeout the time for it.
	maxDrain     = 64 << 10
	drainTimeout = time.Second
)

// leastBodyRate is how many bytes of a body a client sends per second at least, on average
// over the time in which it is waited for. ASP.NET Core's Kestrel asks for 240
// (MinRequestBodyDataRate).
const leastBodyRate = 250

// allowance is how long a client may be waited for over a whole body: as long as for a piece,
// not less than the grace, and longer the more it has sent. Without it a byte now and then keeps a connection to a backend.
type allowance struct {
	grace  time.Duration
	waited time.Duration
	read   int64
	lifted bool // only pieces have a bound
}

func (a *allowance) add(read int, waited time.Duration) {
	a.read += int64(read)
	a.waited += waited
}

// bound returns the time of the next piece, which is that of a piece (0: no bound) or what is
// left of the whole.
func (a *allowance) bound(piece time.Duration) time.Duration {
	if piece <= 0 || a.lifted {
		return max(piece, 0)
	}
	bought := time.Duration(min(a.read, 1<<40)) * (time.Second / leastBodyRate)
	return min(piece, max(max(a.grace, piece)+bought-a.waited, time.Nanosecond))
}

// clientBody is the body of a request of HTTP/1. It must keep coming, and it knows whether
// it has been read to its end: only then may what follows it be another request.
type clientBody struct {
	pace

	body     io.Reader
	length   int64  // -1 if it is not known
	expected bool   // the client waits to be asked for it
	ask      func() // asks

	mu      sync.Mutex // guards what follows, and the deadline of reads
	allowed allowance
	began   time.Time // when the read under way began
	until   time.Time // when it must end
	late    bool      // it did not
	stopped bool
	ended   bool // its end has been read
	failed  bool // it cannot be read to its end any more
}

// Read reads what comes in time.
func (b *clientBody) Read(p []byte) (int, error) {
	if b.whole() { // net/http has begun to watch the connection
		return 0, io.EOF
	}
	if b.expected {
		b.expected = false
		b.ask()
	}
	b.begin(0)
	n, err := b.body.Read(p)
	b.note(n, err)
	return n, err
}

// begin gives a read its time, at most so much unless that is 0.
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

// setTimeout changes the time of a piece, 0 for no bound, that of a read under way too.
func (b *clientBody) setTimeout(timeout time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timeout = timeout; b.until.IsZero() || b.stopped || b.ended || b.failed {
		return
	}
	b.setDeadline(b.allowed.bound(timeout))
}

// liftRate bounds only each piece from now on, that of a read under way too.
func (b *clientBody) liftRate() {
	b.mu.Lock()
	b.allowed.lifted = true
	timeout := b.timeout
	b.mu.Unlock()
	b.setTimeout(timeout)
}

// setDeadline is called with mu held.
func (b *clientBody) setDeadline(timeout time.Duration) {
	b.until = time.Time{}
	if timeout > 0 {
		b.until = b.clock.Now().Add(timeout)
	}
	_ = b.control.SetReadDeadline(b.until)
}

// note takes in what became of a read.
func (b *clientBody) note(n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed.add(n, b.clock.Since(b.began))
	switch {
	case errors.Is(err, io.EOF):
		b.ended = !b.failed
		_ = b.control.SetReadDeadline(time.Time{}) // net/http reads on, to see the client leave
	case err != nil:
		b.failed = true
		b.late = b.late || (!b.until.IsZero() && !b.clock.Now().Before(b.until))
	}
}

// stalled reports whether the client sent nothing for too long. The error does not tell: to
// net/http it is a client that has left, and a trailer that is not whole is malformed.
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

// stop makes a Read under way return, and those after it.
func (b *clientBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if !b.ended {
		_ = b.control.SetReadDeadline(aLongTimeAgo)
	}
}

// wasStopped reports whether the body did not come to its end because nobody wanted it.
// To net/http that looks like a client that has left.
func (b *clientBody) wasStopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped && !b.ended
}

// drain reads what is left where that is little and comes soon. Nobody else may be reading.
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

// takeBody takes the body of a request of HTTP/1, if there is one.
func (e *exchange) takeBody() {
	if e.r.ProtoMajor != 1 || e.r.Body == nil || e.r.Body == http.NoBody || e.r.ContentLength == 0 {
		return
	}
	e.body = &clientBody{
		pace: e.pace(http.NewResponseController(e.w)), body: e.r.Body, length: e.r.ContentLength,
		expected: e.r.ProtoMinor > 0 && e.r.Header["Expect"] != nil, ask: e.askForBody,
		allowed: allowance{grace: e.handler.options.ClientTimeout},
	}
}

// askForBody sends 100 Continue. net/http would do it when the body is read, but at the same
// time the backend may have an informational response to pass on.
func (e *exchange) askForBody() {
	e.heads.Lock()
	defer e.heads.Unlock()
	if !e.answered {
		e.w.WriteHeader(http.StatusContinue)
	}
}

// beginAnswer makes the header of the response the caller's. It is the final response's now.
func (e *exchange) beginAnswer() {
	e.heads.Lock()
	defer e.heads.Unlock()
	e.answered = true
}

// lastOnConnection reports whether the connection must close after the answer, so that
// nothing which comes after the request can be taken for another one: its body has not been
// read to its end without an error, or somebody may see that end elsewhere.
//
// A request in chunks may have had a length too, and one of HTTP/1.0 a Transfer-Encoding:
// net/http does not tell (RFC 9112, 6.1). Whoever asked for another protocol may already
// be speaking it.
func (e *exchange) lastOnConnection(status int) bool {
	if e.r.ProtoMajor != 1 {
		return false
	}
	return e.r.ProtoMinor == 0 || len(e.r.TransferEncoding) > 0 || (e.body != nil && !e.body.whole()) ||
		e.r.Method == http.MethodConnect || (status != http.StatusSwitchingProtocols && e.asksForProtocol())
}

// finishConnection makes sure that nothing more is read of the connection as if it were this
// request's body, or another request.
func (e *exchange) finishConnection() {
	if conn := clientConnOf(e.r); conn != nil {
		conn.finish()
	}
}
