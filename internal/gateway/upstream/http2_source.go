package upstream

import (
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// firstRead is how much is read of a body at first. Later reads take as much as was read before them.
const firstRead = 1 << 10

// http2Source is the body of a request over HTTP/2, which attempts to send it read one after the other. Until the head of a response
// has come, it keeps what it reads, up to MaxReplay bytes: an endpoint may say that it has not processed the request, and then another
// one gets the whole body. A read that waits for the client meanwhile is that of the next attempt.
type http2Source struct {
	body   io.Reader
	stop   func() // makes a running read return
	panics panics.Reporter

	mu       sync.Mutex
	wake     sync.Cond // of mu; for each change of what follows, and of http2Body.gone
	kept     []byte    // what was read
	err      error     // after kept
	busy     bool      // a read is running
	stops    int       // how many calls of stop are running
	lost     bool      // more was read than is kept
	answered bool      // the head of a response has come
	ended    bool      // nothing reads it any more
}

// source returns the source of a request's body, the same one for each attempt.
func (r *Request) source(reporter panics.Reporter) *http2Source {
	if r.streamed == nil {
		r.streamed = &http2Source{body: r.Body, stop: r.StopBody, panics: reporter}
		r.streamed.wake.L = &r.streamed.mu
	}
	return r.streamed
}

// read returns what follows for an attempt.
func (s *http2Source) read(b *http2Body, p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case b.gone || s.ended:
			return 0, errClosed
		case b.at < len(s.kept):
			n := copy(p, s.kept[b.at:])
			b.at += n
			s.drop(b)
			return n, nil
		case s.err != nil:
			return 0, s.err
		case s.busy:
			s.wake.Wait()
		case s.answered || s.lost || len(s.kept) >= MaxReplay:
			s.kept, b.at = nil, 0
			n, err := s.readOn(p)
			if b.gone && err != nil { // it was stopped
				return 0, errClosed
			}
			return n, err
		default:
			s.readAhead()
		}
	}
}

// readOn reads what is not kept. It needs mu held, and releases it meanwhile.
func (s *http2Source) readOn(p []byte) (int, error) {
	s.busy, s.lost = true, true
	s.mu.Unlock()
	n, err := s.take(p)
	s.mu.Lock()
	s.busy, s.err = false, err
	s.wake.Broadcast()
	return n, err
}

// readAhead begins to read what is kept. It needs mu held.
func (s *http2Source) readAhead() {
	have := len(s.kept)
	s.kept = slices.Grow(s.kept, min(max(firstRead, have), MaxReplay-have))
	into := s.kept[have:min(cap(s.kept), MaxReplay)]
	s.busy = true
	go func() {
		n, err := s.take(into)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept = s.kept[:have+n]
		s.busy, s.err = false, err
		s.wake.Broadcast()
	}()
}

func (s *http2Source) take(p []byte) (n int, err error) {
	defer s.panics.CatchError("read the body of a request", &err)
	return s.body.Read(p)
}

// leave ends the reads of an attempt that the transport has ended. No other attempt can have a read that takes what is not kept. So it
// is made to return, unless the head of a response has come: whoever answers may still let the client send.
func (s *http2Source) leave(b *http2Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.gone = true
	s.wake.Broadcast()
	if s.busy && s.lost && !s.answered && !b.head.Load() {
		s.stopRead()
	}
}

// stopRead makes the running read return. It needs mu held, and releases it meanwhile.
func (s *http2Source) stopRead() {
	s.stops++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.stops--
		s.wake.Broadcast()
	}()
	s.stop()
}

// settle is called when the head of a response has come: there is no other attempt than this one.
func (s *http2Source) settle(b *http2Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = true
	s.drop(b)
}

// drop gives up what is kept, once the only attempt has read it. It needs mu held.
func (s *http2Source) drop(b *http2Body) {
	if s.answered && !s.busy && b.at == len(s.kept) {
		s.kept, b.at = nil, 0
	}
}

// whole reports whether another attempt can send the whole body.
func (s *http2Source) whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.lost && !s.answered && !s.ended && (s.err == nil || errors.Is(s.err, io.EOF))
}

// finish returns when nothing reads the body or stops that any more. The owner of the body relies on that. Nil is a request without a source.
func (s *http2Source) finish() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.wake.Broadcast()
	if s.busy {
		s.stopRead()
	}
	for s.busy || s.stops > 0 {
		s.wake.Wait()
	}
}
