package exchange

import (
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Answer is what the client gets.
type Answer struct {
	taking   *watch                                    // bounds the calls that write a response to an HTTP/2 client; reused
	informed func(status int, fields []upstream.Field) // the method inform; kept to avoid an allocation

	heads sync.Mutex // held while a response head is sent
	begun bool       // the final response has begun

	// Aborted: the response has no end.
	Aborted bool
	// Status is that of the response, as it is counted. 0: there is none yet.
	Status int
	// Sent are the bytes of the response's body.
	Sent int64
	// Endpoint is the one that has answered. Empty: none.
	Endpoint string
	// Failure says why the answer is not what was asked for. Empty: it is.
	Failure string
	// Tunnel is the client's connection after a protocol upgrade.
	Tunnel net.Conn
}

// statusClientGone is the logged status when the client left before its answer.
const statusClientGone = 499

// These are failures of a route.
const (
	FailureNoBackend = "no_backend"
	FailureRoute     = "route_unavailable"
)

var aLongTimeAgo = time.Unix(1, 0)

// Refuse answers with a status and its text, in gRPC with a status of its own, and returns false.
func (e *Exchange) Refuse(status int, failure string) bool {
	e.Answer.Failure = failure
	if e.SpeaksGRPC() {
		e.RefuseGRPC(status)
		return false
	}
	e.AnswerWith(status, "text/plain; charset=utf-8", []byte(http.StatusText(status)+"\n"))
	return false
}

// RefuseForNow refuses a request that may succeed a second later.
func (e *Exchange) RefuseForNow(status int, failure string) bool {
	e.w.Header()["Retry-After"] = []string{"1"}
	return e.Refuse(status, failure)
}

// Abandon notes that the client has left, and returns false.
func (e *Exchange) Abandon() bool {
	e.Answer.Status, e.Answer.Failure, e.Answer.Aborted = statusClientGone, upstream.Canceled.String(), true
	return false
}

// GiveUp ends a request whose client has left, or whose time is over, and returns false.
func (e *Exchange) GiveUp() bool {
	if e.r.Context().Err() == nil {
		return e.Refuse(http.StatusGatewayTimeout, upstream.Timeout.String())
	}
	return e.Abandon()
}

// AnswerWith sends a response of our own.
func (e *Exchange) AnswerWith(status int, contentType string, body []byte) {
	e.BeginAnswer()
	if e.Body.http1 != nil {
		e.Body.http1.drain()
	}
	header := e.w.Header()
	if contentType != "" || len(body) > 0 {
		header["Content-Type"] = []string{contentType}
		header.Set("X-Content-Type-Options", "nosniff")
	}
	if status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified {
		header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	e.SendHead(status)
	if e.r.Method == http.MethodHead {
		return
	}
	_, _ = e.Write(body) // an error means that the client has gone
}

// SendHead sends the head of the response, with the route's changes.
func (e *Exchange) SendHead(status int) {
	e.EditHead()
	e.WriteHead(status)
}

// EditHead makes the changes of the backend and of the route, and those of features.
func (e *Exchange) EditHead() {
	header := e.w.Header()
	for _, edit := range e.Edits {
		if edit != nil {
			edit.Apply(header)
		}
	}
	for _, tell := range e.Steps.Tell {
		tell(e, header)
	}
}

// WriteHead sends the head of the response as it is.
func (e *Exchange) WriteHead(status int) {
	// While the gateway drains or stands by, the client should open a new connection for
	// its next request. For HTTP/2, net/http translates this to GOAWAY.
	if e.SendsAway() || e.lastOnConnection(status) {
		e.w.Header()["Connection"] = []string{"close"}
	}
	e.Answer.Status = status
	e.w.WriteHeader(status)
}

// Informed returns what forwards an informational response. It is one function for all requests of a pooled exchange.
func (e *Exchange) Informed() func(status int, fields []upstream.Field) { return e.Answer.informed }

// BeginAnswer marks that the final response has begun. From now on the response header
// belongs to the caller.
func (e *Exchange) BeginAnswer() {
	e.Answer.heads.Lock()
	defer e.Answer.heads.Unlock()
	e.Answer.begun = true
}

// lastOnConnection reports whether the connection must close after the answer, so that the
// bytes after the request cannot be taken for another request. That is so if the body was
// not read to its end without an error, or if another server could see the end of the body
// elsewhere.
//
// A chunked request may also have had a length, and an HTTP/1.0 request a
// Transfer-Encoding. net/http does not report either (RFC 9112, 6.1). A client that asked
// for another protocol may speak it already.
func (e *Exchange) lastOnConnection(status int) bool {
	if e.r.ProtoMajor != 1 {
		return false
	}
	return e.r.ProtoMinor == 0 || len(e.r.TransferEncoding) > 0 || (e.Body.http1 != nil && !e.Body.http1.whole()) ||
		e.r.Method == http.MethodConnect || (status != http.StatusSwitchingProtocols && e.asksForProtocol())
}
