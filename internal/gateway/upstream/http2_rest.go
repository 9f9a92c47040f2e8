package upstream

import (
	"errors"
	"io"
	"reflect"

	"golang.org/x/net/http2"
)

// http2Rest is what follows the head of a response over HTTP/2.
type http2Rest struct {
	framing  framing
	left     int64 // bytes of a body whose length is declared
	trailers []Field
}

// beginBody checks what is known of the body with the head. It waits for the end of a response
// that must not have a body, because whoever sends one is not to be trusted.
func (e *http2Exchange) beginBody() error {
	e.rest.framing = e.head.framing(e.request.Method)
	e.rest.left = e.head.length
	ended := endedWithHead(e.response.Body)
	switch {
	case e.rest.framing == byLength && ended && e.rest.left > 0:
		return malformed("Content-Length without a body")
	case e.rest.framing == byStream && ended:
		e.head.length = 0
	case e.rest.framing == noBody && !ended:
		return e.awaitEnd()
	}
	return nil
}

// endedWithHead reports whether the stream has ended with the head of the response.
// golang.org/x/net/http2 does not tell, but then makes a body without a state, which nothing
// can be read from.
func endedWithHead(body io.ReadCloser) bool { return reflect.TypeOf(body).Size() == 0 }

// awaitEnd waits for the end of a stream without a body.
func (e *http2Exchange) awaitEnd() error {
	var piece [1]byte
	n, err := e.response.Body.Read(piece[:])
	switch {
	case n > 0:
		return malformed("a body where there must be none")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // it expects the length that is declared
		return e.readTrailers()
	}
	return err
}

// readRest reads the body. What is declared must come, and nothing more.
func (e *http2Exchange) readRest(p []byte) (int, error) {
	if e.rest.framing == noBody {
		return 0, io.EOF
	}
	n, err := e.response.Body.Read(p)
	if e.rest.framing == byLength {
		n, err = e.rest.count(n, err)
	}
	if errors.Is(err, io.EOF) {
		if fault := e.readTrailers(); fault != nil {
			err = fault
		}
	}
	if isFault(err) {
		err = malformed("%w", err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		e.failed = true
		e.trusted = e.trusted && !errors.Is(err, errMalformed)
	}
	return n, err
}

// isFault reports whether the transport has ended a stream because it has found a fault in what the endpoint has sent.
func isFault(err error) bool {
	reset, isReset := errors.AsType[http2.StreamError](err)
	return isReset && (reset.Cause == nil || reset.Cause.Error() != resetByPeer)
}

// count compares what was read with what is left.
func (r *http2Rest) count(n int, err error) (int, error) {
	left := r.left
	r.left -= int64(n)
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case r.left < 0, err != nil && err.Error() == moreThanDeclared:
		r.left = 0
		return min(n, int(left)), malformed("a body longer than its Content-Length")
	case ended && r.left > 0:
		return n, malformed("a body shorter than its Content-Length")
	}
	return n, err
}

// readTrailers checks the trailers, once the body has ended.
func (e *http2Exchange) readTrailers() error {
	var err error
	for name, values := range e.response.Trailer {
		for _, value := range values {
			if e.rest.trailers, err = addTrailer(e.rest.trailers, Field{Name: name, Value: trimSpace(value)}); err != nil {
				return err
			}
		}
	}
	return nil
}
