package proxy

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

const (
	// maxJudged bounds the bytes of all bodies that are kept for Services to judge, and maxJudgedOfClient those of one client.
	maxJudged         = 64 << 20
	maxJudgedOfClient = 8 << 20
	// judgedPiece is how much room a body takes at a time: what a client only declares costs nothing.
	judgedPiece = 32 << 10
)

var (
	errBodyTooLarge = errors.New("the body is too large")
	errNoRoom       = errors.New("too many bodies are kept")
)

// bodyRoom is the room for bodies that are kept.
type bodyRoom struct {
	mu       sync.Mutex
	used     int64
	byClient map[netip.Addr]int64
}

func newBodyRoom() *bodyRoom { return &bodyRoom{byClient: map[netip.Addr]int64{}} }

// take takes room. A client that nobody knows has no bound of its own.
func (r *bodyRoom) take(client netip.Addr, size int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+size > maxJudged || client.IsValid() && r.byClient[client]+size > maxJudgedOfClient {
		return false
	}
	r.used += size
	if client.IsValid() {
		r.byClient[client] += size
	}
	return true
}

func (r *bodyRoom) leave(client netip.Addr, size int64) {
	if size == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= size
	if !client.IsValid() {
		return
	}
	if r.byClient[client] -= size; r.byClient[client] <= 0 {
		delete(r.byClient, client)
	}
}

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
		timer := time.AfterFunc(deadline.Sub(e.handler.options.Clock.Now()), stop)
		defer timer.Stop()
	}
	if err := e.keepJudged(source, most); err != nil {
		return e.refuseUnread(err)
	}
	e.isJudged, e.r.Trailer = true, nil
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
		source = e.stream
	}
	if e.body != nil {
		source, stop = e.body, e.body.stop
	}
	e.boundBody(idle)
	return source, stop
}

// keepJudged reads a body to its end.
func (e *exchange) keepJudged(source io.Reader, most int64) error {
	for {
		if len(e.judged) == cap(e.judged) {
			piece := max(judgedPiece, int64(len(e.judged)))
			if e.judged == nil && e.r.ContentLength >= 0 {
				piece = min(piece, e.r.ContentLength+1) // with room to see its end
			}
			if !e.handler.bodies.take(e.shareOf, piece) {
				return errNoRoom
			}
			e.judgedRoom += piece
			grown := make([]byte, len(e.judged), int64(len(e.judged))+piece)
			copy(grown, e.judged)
			e.judged = grown
		}
		n, err := source.Read(e.judged[len(e.judged):cap(e.judged)])
		e.judged = e.judged[:len(e.judged)+n]
		switch {
		case int64(len(e.judged)) > most:
			return errBodyTooLarge
		case errors.Is(err, io.EOF) && e.r.ContentLength >= 0 && int64(len(e.judged)) != e.r.ContentLength:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// refuseUnread answers a request whose body could not be read.
func (e *exchange) refuseUnread(err error) bool {
	deadline := e.deadline()
	switch {
	case errors.Is(err, errBodyTooLarge):
		return e.refuse(http.StatusRequestEntityTooLarge, "body_too_large")
	case errors.Is(err, errNoRoom):
		return e.refuseForNow(http.StatusServiceUnavailable, "auth_body_room")
	case !deadline.IsZero() && !e.handler.options.Clock.Now().Before(deadline):
		return e.refuse(http.StatusGatewayTimeout, upstream.Timeout.String())
	case e.clientStalled():
		return e.refuse(http.StatusRequestTimeout, "client_stalled")
	case e.r.Context().Err() != nil:
		e.status, e.failure, e.aborted = statusClientGone, upstream.Canceled.String(), true
		return false
	}
	return e.refuse(http.StatusBadRequest, upstream.RequestBody.String())
}

// dropJudged gives the room of the body back.
func (e *exchange) dropJudged() {
	e.handler.bodies.leave(e.shareOf, e.judgedRoom)
	e.judged, e.judgedRoom = nil, 0
}
