package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// http2Body is the body of a request that is sent while its response is read. After finish,
// nothing reads from the request's body any more. The owner of the body relies on that.
type http2Body struct {
	request *Request
	panics  panics.Reporter
	trailer http.Header
	ended   func()
	// stuckAfter bounds how long the endpoint may take for a piece. After that, stuck is
	// called.
	stuckAfter time.Duration
	stuck      func()
	cause      error // the cause of failed, written before it
	failed     atomic.Bool
	whole      atomic.Bool

	mu      sync.Mutex // held while the body is read
	touched bool
	closed  bool
	timer   *time.Timer // runs while a piece is sent
}

// Read reads the body, and its trailers at the end.
func (b *http2Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, errClosed
	}
	b.touched = true
	b.stopTimer()
	n, err := b.take(p)
	switch {
	case err == nil:
		b.startTimer()
	case errors.Is(err, io.EOF):
	case !b.failed.Load():
		b.cause = err
		b.failed.Store(true)
	}
	return n, err
}

// take reads the next bytes, and at the end the trailers. It runs on a goroutine of the transport. A panic leaves the body
// unfinished.
func (b *http2Body) take(p []byte) (n int, err error) {
	defer b.panics.CatchError("read the body of a request", &err)
	n, err = b.request.Body.Read(p)
	if errors.Is(err, io.EOF) {
		b.end()
	}
	return n, err
}

// startTimer and stopTimer need mu held.
func (b *http2Body) startTimer() {
	if b.request.Patient {
		return
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(b.stuckAfter, b.stuck)
		return
	}
	b.timer.Reset(b.stuckAfter)
}

func (b *http2Body) stopTimer() {
	if b.timer != nil {
		b.timer.Stop()
	}
}

func (b *http2Body) end() {
	if b.whole.Load() {
		return
	}
	if b.trailer != nil {
		for _, field := range b.request.Trailers() {
			name := textproto.CanonicalMIMEHeaderKey(field.Name)
			if _, announced := b.trailer[name]; announced && !fieldname.ForbiddenTrailer(name) {
				b.trailer[name] = append(b.trailer[name], field.Value)
			}
		}
	}
	b.whole.Store(true)
	b.ended()
}

// Close is called by the transport when it does not need the rest. A read may still be
// running; finish waits for it.
func (b *http2Body) Close() error { return nil }

func (b *http2Body) finish() (touched bool) {
	if !b.whole.Load() && !b.failed.Load() && b.reading() {
		b.request.StopBody()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.stopTimer()
	return b.touched
}

// reading reports whether a Read is running. If none is running, no other will start.
func (b *http2Body) reading() bool {
	if !b.mu.TryLock() {
		return true
	}
	b.closed = true
	b.mu.Unlock()
	return false
}
