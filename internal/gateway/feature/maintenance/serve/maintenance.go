// Package serve answers the requests of a route while it is closed.
package serve

import (
	"net/http"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/maintenance"
)

// Planned is also the status in metrics: what was planned is no error of the server, and nobody is to be called for it.
const Planned = "maintenance"

// Step answers the requests of a route while it is closed.
type Step struct{ *maintenance.Policy }

// Admit refuses requests while the route is closed. Clients are told when to come again.
func (s Step) Admit(e *exchange.Exchange) bool {
	now := e.Clock.Now().Round(0) // the clock on the wall, which may be set
	closed, ends := s.At(now)
	if !closed {
		return true
	}
	e.Facts.Planned = true
	if !ends.IsZero() {
		seconds := int64((ends.Sub(now) + time.Second - 1) / time.Second)
		e.Head()["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	}
	if s.Body == "" || e.SpeaksGRPC() {
		return e.Refuse(http.StatusServiceUnavailable, Planned)
	}
	e.Answer.Failure = Planned
	e.AnswerWith(http.StatusServiceUnavailable, s.ContentType, []byte(s.Body))
	return false
}
