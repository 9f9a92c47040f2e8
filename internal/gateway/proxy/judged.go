package proxy

import (
	"errors"
	"io"
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/gateway/whole"
)

// readJudged reads the whole body, so that the Service and the backend get the same one. Trailers are not shown to the Service, so
// the backend does not get them. If the body cannot be read, it answers the request and returns false.
func (e *exchange) readJudged(most int64) bool {
	if e.r.Body == nil || e.r.Body == http.NoBody || e.r.ContentLength == 0 {
		return true
	}
	if limit := e.route.MaxBodyBytes; limit > 0 {
		most = min(most, limit)
	}
	if e.r.ContentLength > most {
		return e.refuse(http.StatusRequestEntityTooLarge, "body_too_large")
	}
	source, stop := e.judgedSource()
	if deadline := e.deadline(); !deadline.IsZero() {
		defer upstream.StopAfter(deadline.Sub(e.handler.options.Clock.Now()), stop)()
	}
	if err := e.body.judged.Read(e.handler.kept, e.keptFor(), source, most, e.r.ContentLength); err != nil {
		return e.refuseUnread(err)
	}
	e.body.isJudged, e.r.Trailer = true, nil
	return true
}

// judgedSource is the body, with its timeouts, and what ends a read.
func (e *exchange) judgedSource() (source io.Reader, stop func()) {
	idle := e.handler.options.ClientTimeout
	if e.route.Timeouts.IdleSet {
		idle = e.route.Timeouts.Idle
	}
	control := http.NewResponseController(e.w)
	source, stop = e.r.Body, func() { _ = control.SetReadDeadline(aLongTimeAgo) }
	if e.r.ProtoMajor == 2 {
		e.takeStream(control)
		source = e.body.http2
	}
	if e.body.http1 != nil {
		source, stop = e.body.http1, e.body.http1.stop
	}
	e.boundBody(idle)
	return source, stop
}

// refuseUnread answers a request whose body could not be read.
func (e *exchange) refuseUnread(err error) bool {
	deadline := e.deadline()
	switch {
	case errors.Is(err, whole.ErrTooLarge):
		return e.refuse(http.StatusRequestEntityTooLarge, "body_too_large")
	case errors.Is(err, whole.ErrNoRoom):
		return e.refuseForNow(http.StatusServiceUnavailable, "auth_room")
	case !deadline.IsZero() && !e.handler.options.Clock.Now().Before(deadline):
		return e.refuse(http.StatusGatewayTimeout, upstream.Timeout.String())
	case e.clientStalled():
		return e.refuse(http.StatusRequestTimeout, "client_stalled")
	case e.r.Context().Err() != nil:
		return e.abandon()
	}
	return e.refuse(http.StatusBadRequest, upstream.RequestBody.String())
}
