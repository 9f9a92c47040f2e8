package exchange

import (
	"errors"
	"io"
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/gateway/whole"
)

// ReadWhole reads the whole body, so that the Service and the backend get the same one. Trailers are not shown to the Service, so
// the backend does not get them. service is its ID. If the body cannot be read, it answers the request and returns false.
func (e *Exchange) ReadWhole(most int64, service string) bool {
	if !e.HasBody() {
		return true
	}
	if e.r.ContentLength > most {
		return e.Refuse(http.StatusRequestEntityTooLarge, "body_too_large")
	}
	source, stop := e.wholeSource()
	if deadline := e.Deadline(); !deadline.IsZero() {
		defer upstream.StopAfter(deadline.Sub(e.Clock.Now()), stop)()
	}
	if err := e.Body.Whole.Read(e.Room, e.OwnerOf(service), source, most, e.r.ContentLength); err != nil {
		return e.refuseUnread(err)
	}
	e.Body.IsWhole, e.r.Trailer = true, nil
	return true
}

// wholeSource is the body, with its timeouts, and what ends a read.
func (e *Exchange) wholeSource() (source io.Reader, stop func()) {
	idle := e.ClientTimeout
	if e.Timeouts.IdleSet {
		idle = e.Timeouts.Idle
	}
	control := http.NewResponseController(e.w)
	source, stop = e.r.Body, func() { _ = control.SetReadDeadline(aLongTimeAgo) }
	if e.r.ProtoMajor == 2 {
		e.takeStream(control)
		source = e.Body.http2
	}
	if e.Body.http1 != nil {
		source, stop = e.Body.http1, e.Body.http1.stop
	}
	e.BoundBody(idle)
	return source, stop
}

// OwnerOf is for whom the bytes of a question to a Service are kept.
func (e *Exchange) OwnerOf(service string) whole.Owner {
	return whole.Owner{Client: e.Client.ShareOf, Service: service}
}

// refuseUnread answers a request whose body could not be read.
func (e *Exchange) refuseUnread(err error) bool {
	deadline := e.Deadline()
	switch {
	case errors.Is(err, whole.ErrTooLarge):
		return e.Refuse(http.StatusRequestEntityTooLarge, "body_too_large")
	case errors.Is(err, whole.ErrNoRoom):
		return e.RefuseForNow(http.StatusServiceUnavailable, "auth_room")
	case !deadline.IsZero() && !e.Clock.Now().Before(deadline):
		return e.Refuse(http.StatusGatewayTimeout, upstream.Timeout.String())
	case e.ClientStalled():
		return e.Refuse(http.StatusRequestTimeout, "client_stalled")
	case e.r.Context().Err() != nil:
		return e.Abandon()
	}
	return e.Refuse(http.StatusBadRequest, upstream.RequestBody.String())
}
