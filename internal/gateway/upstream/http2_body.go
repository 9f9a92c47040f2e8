package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

// http2Body is the body of a request in one attempt to send it, while its response is read.
type http2Body struct {
	request *Request
	source  *http2Source
	trailer http.Header
	ended   func()
	vigil   vigil // runs while a piece is sent
	cause   error // the cause of failed, written before it
	failed  atomic.Bool
	whole   atomic.Bool
	touched atomic.Bool
	head    atomic.Bool // the head of a response has begun to come, which is not known to be informational

	at   int  // how much of what is kept was read; guarded by http2Source.mu
	gone bool // the transport needs no more; guarded by http2Source.mu

	mu     sync.Mutex
	closed bool
}

// addBody adds the body to a request, if it has one.
func (e *http2Exchange) addBody(request *http.Request) {
	req := e.request
	if !req.hasBody() {
		return
	}
	request.ContentLength = req.ContentLength
	if req.replay != nil {
		replay := string(req.replay) // a copy, because the transport may read it after the exchange
		request.Body = io.NopCloser(strings.NewReader(replay))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(replay)), nil }
		return
	}
	request.Body = e.body
	if req.Trailers != nil {
		request.Trailer = http.Header{}
		for _, field := range req.Trailers() { // the names are announced; the values are known at the end of the body
			request.Trailer[textproto.CanonicalMIMEHeaderKey(field.Name)] = nil
		}
		e.body.trailer = request.Trailer
	}
}

// Read reads the body, and its trailers at the end.
func (b *http2Body) Read(p []byte) (int, error) {
	b.touched.Store(true)
	b.vigil.end()
	n, err := b.source.read(b, p)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed, errors.Is(err, errClosed):
		return 0, errClosed
	case err == nil:
		b.vigil.begin()
	case errors.Is(err, io.EOF):
		err = b.end()
	}
	if err != nil && !errors.Is(err, io.EOF) && !b.failed.Load() {
		b.cause = err
		b.failed.Store(true)
	}
	return n, err
}

// end takes the trailers. It runs on a goroutine of the transport. After a panic, the body is unfinished.
func (b *http2Body) end() (err error) {
	if b.whole.Load() {
		return io.EOF
	}
	err = b.takeTrailers()
	if err == nil {
		b.whole.Store(true)
		b.ended()
		err = io.EOF
	}
	return err
}

func (b *http2Body) takeTrailers() (err error) {
	defer b.source.panics.CatchError("read the body of a request", &err)
	if b.trailer == nil {
		return nil
	}
	for _, field := range b.request.Trailers() {
		name := textproto.CanonicalMIMEHeaderKey(field.Name)
		if _, announced := b.trailer[name]; announced && !fieldname.ForbiddenTrailer(name) {
			b.trailer[name] = append(b.trailer[name], field.Value)
		}
	}
	return nil
}

// Close is called by the transport when it does not need the rest.
func (b *http2Body) Close() error {
	b.source.leave(b)
	return nil
}

// finish ends the attempt. The source may be read on by another one.
func (b *http2Body) finish() (touched bool) {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.vigil.end()
	b.source.leave(b)
	return b.touched.Load()
}
