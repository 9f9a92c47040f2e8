package proxy

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

const copySize = 32 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// respond forwards the backend's response.
func (e *call) respond(response *upstream.Response) {
	e.BeginAnswer()
	header := e.w.Header()
	for _, filter := range e.Steps.Filter {
		filter(response)
	}
	exchange.SetFields(header, response.Fields)
	for _, head := range e.Steps.Head {
		head(&e.Exchange, header)
	}
	if _, ok := header["Content-Type"]; !ok {
		header["Content-Type"] = nil // the backend sent none, and net/http must not guess
	}
	e.LiftRate()
	if response.Stream {
		clientConnOf(e.r).stream(true)
		e.LiftBounds()
	}
	e.EditHead()
	var to exchange.BodyWriter = (*toClient)(e)
	for _, body := range slices.Backward(e.Steps.Body) {
		to = body(&e.Exchange, response, to)
	}
	e.WriteHead(response.Status)
	dropAnnounced(header)
	if e.copyBody(response, to) {
		e.addTrailers(response.Trailers())
	}
}

// dropAnnounced removes fields that the head says are trailers, now that it is written. net/http would send what the head has of
// them as trailers too: also those that must not be any, and those of the gateway.
func dropAnnounced(header http.Header) {
	for _, names := range header["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			delete(header, http.CanonicalHeaderKey(strings.Trim(name, " \t")))
		}
	}
}

// addTrailers sends the trailers. Without the flush, net/http might compute a length for a
// short body. Then trailers would not be possible.
func (e *call) addTrailers(trailers []upstream.Field) {
	if len(trailers) == 0 {
		return
	}
	e.Flush()
	header := e.w.Header()
	trailer := header["Trailer"]
	for _, field := range trailers {
		name := http.CanonicalHeaderKey(field.Name)
		if e.Facts.Encoded && compress.OfBody(name) {
			continue // it was not announced, and is that of other bytes
		}
		if !announced(trailer, name) {
			name = http.TrailerPrefix + name
		}
		header[name] = append(header[name], field.Value)
	}
}

// explainCut returns why a response has no end.
func (e *call) explainCut(err error) string {
	switch {
	case errors.Is(err, upstream.ErrIdle):
		return "backend_stalled"
	case e.ClientStalled():
		return "client_stalled"
	case e.Body.OverHTTP1() && clientConnOf(e.r).isReset():
		return "client_write"
	}
	return "response_body"
}

// copyBody forwards the body as it comes. It flushes what has come before it waits for the
// backend. It reports whether the body was complete.
func (e *call) copyBody(response *upstream.Response, to exchange.BodyWriter) bool {
	buffer := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(buffer)
	n, err := e.readFirst(response, buffer[:])
	for ; ; n, err = response.Read(buffer[:]) {
		if n > 0 {
			if _, writeErr := to.Write(buffer[:n]); writeErr != nil {
				return e.cut("client_write")
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return to.Close() == nil || e.cut("client_write")
		case err != nil:
			return e.cut(e.explainCut(err))
		case !response.Buffered() && to.Flush() != nil:
			return e.cut("client_write")
		}
	}
}

// cut notes that the response has no end, and returns false.
func (e *call) cut(failure string) bool {
	e.Answer.Failure, e.Answer.Aborted = failure, true
	return false
}

// toClient is the end of the way of a body to the client.
type toClient call

func (c *toClient) Write(p []byte) (int, error) { return (*call)(c).Write(p) }
func (c *toClient) Close() error                { return nil }

func (c *toClient) Flush() error {
	(*call)(c).Flush()
	return nil
}

// headGrace is how long the head of a response of known length waits for its body. Most often the body is on the way, and both go out in
// one write.
const headGrace = 2 * time.Millisecond

// readFirst reads the beginning of a body. The head does not wait long for it.
func (e *call) readFirst(response *upstream.Response, buffer []byte) (int, error) {
	switch {
	case response.Buffered():
	case response.ContentLength < 0:
		e.Flush()
	case response.ContentLength == 0 || e.r.Method == http.MethodHead || response.Status == http.StatusNotModified: // there is no body
	default: // Read uses nothing of the client's side
		defer upstream.StopAfter(headGrace, func() {
			defer e.Panics.Catch("send the head of a response")
			e.Flush()
		})()
	}
	return response.Read(buffer)
}
