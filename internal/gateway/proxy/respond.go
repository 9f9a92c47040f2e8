package proxy

import (
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

const copySize = 32 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// inform forwards an informational response. HTTP/1.0 has none.
func (e *exchange) inform(status int, fields []upstream.Field) {
	if !e.r.ProtoAtLeast(1, 1) {
		return
	}
	e.answer.heads.Lock()
	defer e.answer.heads.Unlock()
	header := e.w.Header()
	before := header.Clone()
	defer func() { // also after a panic: none of this belongs to the final response
		clear(header)
		for name, values := range before {
			header[name] = values
		}
	}()
	setFields(header, fields)
	for _, hint := range e.steps.hint {
		hint(e, header)
	}
	e.writeHint(status)
}

// writeHint sends the head of an informational response. The client must take it in time. The final response may come later, so
// there is no deadline afterwards.
func (e *exchange) writeHint(status int) {
	e.beginTaking()
	defer e.endTaking()
	if e.r.ProtoMajor == 1 {
		defer e.setWriteDeadline(time.Time{})
	}
	e.w.WriteHeader(status)
}

// respond forwards the backend's response.
func (e *exchange) respond(response *upstream.Response) {
	e.beginAnswer()
	header := e.w.Header()
	for _, filter := range e.steps.filter {
		filter(response)
	}
	setFields(header, response.Fields)
	for _, head := range e.steps.head {
		head(e, header)
	}
	if _, ok := header["Content-Type"]; !ok {
		header["Content-Type"] = nil // the backend sent none, and net/http must not guess
	}
	e.liftRate()
	if response.Stream {
		e.liftBounds()
	}
	e.editHead()
	var to bodyWriter = (*toClient)(e)
	for _, body := range slices.Backward(e.steps.body) {
		to = body(e, response, to)
	}
	e.writeHead(response.Status)
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
func (e *exchange) addTrailers(trailers []upstream.Field) {
	if len(trailers) == 0 {
		return
	}
	e.flush()
	header := e.w.Header()
	trailer := header["Trailer"]
	for _, field := range trailers {
		name := http.CanonicalHeaderKey(field.Name)
		if e.facts.encoded && compress.OfBody(name) {
			continue // it was not announced, and is that of other bytes
		}
		if !announced(trailer, name) {
			name = http.TrailerPrefix + name
		}
		header[name] = append(header[name], field.Value)
	}
}

// setFields adds fields to a header. All values share one slice to save allocations.
func setFields(header http.Header, fields []upstream.Field) {
	values := make([]string, len(fields))
	for i, field := range fields {
		name := textproto.CanonicalMIMEHeaderKey(field.Name)
		values[i] = field.Value
		if before := header[name]; before != nil {
			header[name] = append(before, field.Value)
			continue
		}
		header[name] = values[i : i+1 : i+1]
	}
}

// explainCut returns why a response has no end.
func (e *exchange) explainCut(err error) string {
	switch {
	case errors.Is(err, upstream.ErrIdle):
		return "backend_stalled"
	case e.clientStalled():
		return "client_stalled"
	case e.body.http1 != nil && clientConnOf(e.r).isReset():
		return "client_write"
	}
	return "response_body"
}

// copyBody forwards the body as it comes. It flushes what has come before it waits for the
// backend. It reports whether the body was complete.
func (e *exchange) copyBody(response *upstream.Response, to bodyWriter) bool {
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
func (e *exchange) cut(failure string) bool {
	e.answer.failure, e.answer.aborted = failure, true
	return false
}

// toClient is the end of the way of a body to the client.
type toClient exchange

func (c *toClient) Write(p []byte) (int, error) { return (*exchange)(c).write(p) }
func (c *toClient) Close() error                { return nil }

func (c *toClient) Flush() error {
	(*exchange)(c).flush()
	return nil
}

// headGrace is how long the head of a response of known length waits for its body. Most often the body is on the way, and both go out in
// one write.
const headGrace = 2 * time.Millisecond

// readFirst reads the beginning of a body. The head does not wait long for it.
func (e *exchange) readFirst(response *upstream.Response, buffer []byte) (int, error) {
	switch {
	case response.Buffered():
	case response.ContentLength < 0:
		e.flush()
	case response.ContentLength == 0 || e.r.Method == http.MethodHead || response.Status == http.StatusNotModified: // there is no body
	default: // Read uses nothing of the client's side
		defer upstream.StopAfter(headGrace, func() {
			defer e.handler.options.Panics.Catch("send the head of a response")
			e.flush()
		})()
	}
	return response.Read(buffer)
}
