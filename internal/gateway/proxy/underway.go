package proxy

import (
	"net/http"
	"sync"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
)

// underWay counts the requests under way, from their heads to the ends of their responses.
// Each costs memory, over HTTP/2 without a connection of its own.
type underWay struct {
	mu       sync.Mutex
	requests clients.Places
}

// enter counts the request, or answers that there are too many.
func (e *exchange) enter() bool {
	if e.state == nil || e.state.Requests <= 0 {
		return true
	}
	u := &e.handler.underWay
	u.mu.Lock()
	room, full := u.requests.Room(e.shareOf, e.state.Requests), u.requests.Taken() >= e.state.Requests
	if room {
		u.requests.Take(e.shareOf)
	}
	u.mu.Unlock()
	switch {
	case room:
		e.counted = true
		return true
	case full:
		return e.turnAway(http.StatusServiceUnavailable, "replica_full")
	}
	return e.turnAway(http.StatusTooManyRequests, "client_share")
}

// turnAway refuses a request that is not counted. Over HTTP/2 the answer has no body: for one
// the client would have to open its window, and hold what is not counted until then.
func (e *exchange) turnAway(status int, failure string) bool {
	if e.r.ProtoMajor != 2 {
		return e.refuseForNow(status, failure)
	}
	e.failure = failure
	e.w.Header()["Retry-After"] = []string{"1"}
	e.answer(status, "", nil)
	return false
}

// leave counts the request no more.
func (e *exchange) leave() {
	if !e.counted {
		return
	}
	u := &e.handler.underWay
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests.Release(e.shareOf)
}
