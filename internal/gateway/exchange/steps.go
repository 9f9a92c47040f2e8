package exchange

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Steps are what features do with the requests of one route. They are made once for each route. A feature that a route does not ask
// for has none.
type Steps struct {
	// Admit lets a request in. false: it has answered.
	Admit []func(e *Exchange) bool
	// Choose wishes for a backend, by its place among those of the route, or for an endpoint. backend negative: any. Nil, or neither of
	// them: the load decides.
	Choose func(e *Exchange) (backend int, endpoint upstream.Affinity)
	// Send comes before the request is sent, which is built. With a response, the backend is not asked. done: there is an answer.
	Send []func(e *Exchange) (response *upstream.Response, done bool)
	// Receive gets what the backend answers, and returns the response that goes on. Nil: the backend has to be asked again.
	Receive []func(e *Exchange, response *upstream.Response) *upstream.Response
	// Failed is told why no backend has answered.
	Failed []func(e *Exchange, err error)
	// Filter takes fields of the backend away.
	Filter []func(response *upstream.Response)
	// Head adds fields to the head of a response before the edits of the route. Tell does so after them, in each final head: also of
	// our own answers. Hint changes heads of 1xx.
	Head, Tell, Hint []func(e *Exchange, header http.Header)
	// Body wraps the way of a response's body to the client. The first one gets the body as the backend sends it.
	Body []func(e *Exchange, response *upstream.Response, to BodyWriter) BodyWriter
	// End comes last, whatever has happened. returned: it was no panic.
	End []func(e *Exchange, returned bool)
}

// Count returns how many there are. Routes that ask for nothing have in common what holds everywhere.
func (s *Steps) Count() int {
	return len(s.Admit) + len(s.Send) + len(s.Receive) + len(s.Failed) + len(s.Filter) +
		len(s.Head) + len(s.Tell) + len(s.Hint) + len(s.Body) + len(s.End)
}

// Finish runs end steps. A panic in one keeps no other from running: each gives something back.
func (e *Exchange) Finish(ends []func(*Exchange, bool), returned bool) {
	if len(ends) == 0 {
		return
	}
	defer e.Finish(ends[1:], returned)
	ends[0](e, returned)
}

// BodyWriter is a part of the way of a response's body to the client. Close ends a body that is whole. One that was cut has no end.
type BodyWriter interface {
	Write(p []byte) (int, error)
	Flush() error
	Close() error
}

// slot is what one feature has noted about a request.
type slot[T any] struct{ noted T }

func (s *slot[T]) reset() { *s = slot[T]{} }

// SlotOf returns what a feature has noted about a request: nothing, at first. It is pooled with the exchange. The type says whose it is.
func SlotOf[T any](e *Exchange) *T {
	for _, one := range e.slots {
		if s, ok := one.(*slot[T]); ok {
			return &s.noted
		}
	}
	s := new(slot[T])
	e.slots = append(e.slots, s)
	return &s.noted
}
