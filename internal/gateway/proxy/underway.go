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
func (e *call) enter() bool {
	if e.state == nil || e.state.Requests <= 0 {
		return true
	}
	u := &e.handler.underWay
	u.mu.Lock()
	room, full := u.requests.Room(e.Client.ShareOf, e.state.Requests), u.requests.Taken() >= e.state.Requests
	if room {
		u.requests.Take(e.Client.ShareOf)
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

// turnAway refuses a request that is not counted. Over HTTP/2 the answer has no body.
// Otherwise the answer would wait until the client opens its window, and an uncounted
// request would use memory.
func (e *call) turnAway(status int, failure string) bool {
	if e.r.ProtoMajor != 2 {
		return e.RefuseForNow(status, failure)
	}
	e.Answer.Failure = failure
	e.w.Header()["Retry-After"] = []string{"1"}
	if e.SpeaksGRPC() {
		e.RefuseGRPC(status)
	} else {
		e.AnswerWith(status, "", nil)
	}
	return false
}

// leave ends the counting of the request.
func (e *call) leave() {
	e.Body.Whole.Drop(e.Room)
	if !e.counted {
		return
	}
	u := &e.handler.underWay
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests.Release(e.Client.ShareOf)
}
