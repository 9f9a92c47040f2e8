package exchange

import (
	"context"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/gateway/whole"
)

// Process is what all exchanges of a process have in common.
type Process struct {
	// Clock gives the time.
	Clock clock.PassiveClock
	// ClientTimeout bounds how long a client may send nothing of a request's body, when the route has no bound. It also bounds how long
	// a client may take nothing of a response.
	ClientTimeout time.Duration
	// Realm is that of authentication when the route has none.
	Realm string
	// Panics is told of panics that are caught.
	Panics panics.Reporter
	// Room is the room for bodies that are read whole.
	Room *whole.Room
	// SendsAway reports whether clients should open another connection for their next request.
	SendsAway func() bool
}

// Core is what features ask of whoever serves an exchange.
type Core interface {
	// IsProven reports whether the client has proven with a certificate who it is.
	IsProven() bool
	// ReadsOneWay reports whether every known server reads the path as the gateway does.
	ReadsOneWay() bool
	// Returns reports whether a browser that was sent away comes back to the route with the answer.
	Returns() bool
	// Targets calls yield for each backend of the route, by its place among those of the table, with the host and the target that it
	// would get.
	Targets(yield func(backend int, host, target string))
	// StripCookies removes from fields Cookie what backends and Services must not get.
	StripCookies(values []string) []string
}

// Exchange is the state of one request. Exchanges are pooled and reused for other requests.
type Exchange struct {
	*Process
	Core

	Request

	w     http.ResponseWriter
	slots []interface{ reset() } // what features have noted, each for itself

	// Steps are those of the route. While there is none, they are those that hold everywhere.
	Steps *Steps
	// Route is the name of the route. Empty: there is none yet.
	Route string
	// Timeouts are those of the route. Nil: there is none yet.
	Timeouts *model.Timeouts
	// Chosen is the place of the backend among those of the route, once it is chosen. Backend is its place among those of the table.
	Chosen, Backend int
	// Outgoing is the request for the backend, once it is built.
	Outgoing upstream.Request
	// Edits change the head of each final response: those of the backend, then those of the route. Nil: nothing.
	Edits [2]*model.HeaderEdit

	// These are its other parts.
	Client Client
	Body   Body
	Answer Answer
	Facts  Facts
}

// Facts are what features have found out about a request. Each has one writer.
type Facts struct {
	// These are of auth. Proven: the client had to prove who it is, and Identity is its name. Add are fields for the backend. Hide are
	// those that it must not get from the client, and Evaluated those that a Service was asked about, folded. Cookies are those of a
	// session, for the answer.
	Proven          bool
	Identity        string
	Add             []upstream.Field
	Hide, Evaluated []string
	Cookies         []string

	// Planned is of maintenance: the answer is no error.
	Planned bool
	// Encoded is of compression: the body of the response is not as the backend has sent it.
	Encoded bool
	// CacheResult is of the cache, for the access log. Empty: the route has none.
	CacheResult string
}

// Begin takes a request. The exchange is as Reset has left it, or new.
func (e *Exchange) Begin(process *Process, core Core, steps *Steps, w http.ResponseWriter, r *http.Request) {
	if e.Answer.informed == nil {
		e.Answer.informed = e.inform
		e.Answer.taking = &watch{cut: e.cutStream}
	}
	e.Process, e.Core, e.Steps, e.w, e.r = process, core, steps, w, r
	e.Start, e.Query = process.Clock.Now(), r.URL.RawQuery
	e.takeBody()
}

// Reset forgets the request.
func (e *Exchange) Reset() {
	clear(e.Facts.Add)
	for _, slot := range e.slots {
		slot.reset()
	}
	*e = Exchange{
		slots:  e.slots,
		Answer: Answer{informed: e.Answer.informed, taking: e.Answer.taking}, Facts: Facts{Add: e.Facts.Add[:0]},
	}
}

// Head has the fields of the response, by their canonical names, until it is sent.
func (e *Exchange) Head() http.Header { return e.w.Header() }

// Deadline is when the response must have ended. Zero: never.
func (e *Exchange) Deadline() time.Time {
	if e.Timeouts.Request <= 0 {
		return time.Time{}
	}
	return e.Start.Add(e.Timeouts.Request)
}

// UntilDeadline returns the context of the request. It also ends when the time of the route does.
func (e *Exchange) UntilDeadline() (context.Context, context.CancelFunc) {
	deadline := e.Deadline()
	if deadline.IsZero() {
		return e.r.Context(), func() {}
	}
	return context.WithTimeout(e.r.Context(), deadline.Sub(e.Clock.Now()))
}
