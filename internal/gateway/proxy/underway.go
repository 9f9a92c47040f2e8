package proxy

import (
	"net/http"
	"sync"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
)

// underWay counts the requests in flight, from their heads to the ends of their responses.
// Each one costs memory. HTTP/2 requests need no connection of their own, so the limit on
// connections does not bound them.
type underWay struct {
	mu       sync.Mutex
	requests clients.Places
}

// enter counts the request. If there are too many, it answers the request and returns
// false.
func (e *exchange) enter() bool {
	if e.state == nil || e.state.Requests <= 0 {
		return true
	}
	u := &e.handler.underWay
	u.mu.Lock()
	room, full := u.requests.Room(e.client.shareOf, e.state.Requests), u.requests.Taken() >= e.state.Requests
	if room {
		u.requests.Take(e.client.shareOf)
	}
	u.mu.Unlock()
	switch {
	case room:
		e.client.counted = true
		return true
	case full:
		return e.turnAway(http.StatusServiceUnavailable, "replica_full")
	}
	return e.turnAway(http.StatusTooManyRequests, "client_share")
}

// turnAway refuses a request that is not counted. Over HTTP/2 the answer has no body.
// Otherwise the answer would wait until the client opens its window, and an uncounted
// request would use memory.
func (e *exchange) turnAway(status int, failure string) bool {
	if e.r.ProtoMajor != 2 {
		return e.refuseForNow(status, failure)
	}
	e.answer.failure = failure
	e.w.Header()["Retry-After"] = []string{"1"}
	if e.speaksGRPC() {
		e.refuseGRPC(status)
	} else {
		e.answerWith(status, "", nil)
	}
	return false
}

// leave ends the counting of the request.
func (e *exchange) leave() {
	e.body.judged.Drop(e.handler.kept)
	if !e.client.counted {
		return
	}
	u := &e.handler.underWay
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests.Release(e.client.shareOf)
}
