package proxy

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// steps are what features do with the requests of one route. Set makes them, once for each route, in the order of order.go. A feature
// that a route does not ask for has none.
type steps struct {
	// admit lets a request in. false: it has answered.
	admit []func(e *exchange) bool
	// choose wishes for a backend, or for an endpoint. Nil, or neither of them: the load decides.
	choose func(e *exchange) (backend *table.WeightedBackend, endpoint upstream.Affinity)
	// send comes before the request is sent, which is built. With a response, the backend is not asked. done: there is an answer.
	send []func(e *exchange) (response *upstream.Response, done bool)
	// receive gets what the backend answers, and returns the response that goes on. Nil: the backend has to be asked again.
	receive []func(e *exchange, response *upstream.Response) *upstream.Response
	// failed is told why no backend has answered.
	failed []func(e *exchange, err error)
	// filter takes fields of the backend away.
	filter []func(response *upstream.Response)
	// head adds fields to the head of a response before the edits of the route. tell does so after them, in each final head: also of
	// our own answers. hint changes heads of 1xx.
	head, tell, hint []func(e *exchange, header http.Header)
	// body wraps the way of a response's body to the client. The first one gets the body as the backend sends it.
	body []func(e *exchange, response *upstream.Response, to bodyWriter) bodyWriter
	// end comes last, whatever has happened. returned: it was no panic.
	end []func(e *exchange, returned bool)
}

// count returns how many there are. Routes that ask for nothing have in common what holds everywhere.
func (s *steps) count() int {
	return len(s.admit) + len(s.send) + len(s.receive) + len(s.failed) + len(s.filter) +
		len(s.head) + len(s.tell) + len(s.hint) + len(s.body) + len(s.end)
}

// bodyWriter is a part of the way of a response's body to the client. Close ends a body that is whole. One that was cut has no end.
type bodyWriter interface {
	Write(p []byte) (int, error)
	Flush() error
	Close() error
}

// slot is what one feature has noted about a request.
type slot[T any] struct{ noted T }

func (s *slot[T]) reset() { *s = slot[T]{} }

// slotOf returns what a feature has noted about a request: nothing, at first. It is pooled with the exchange.
func slotOf[T any](e *exchange) *T {
	for _, one := range e.slots {
		if s, ok := one.(*slot[T]); ok {
			return &s.noted
		}
	}
	s := new(slot[T])
	e.slots = append(e.slots, s)
	return &s.noted
}
