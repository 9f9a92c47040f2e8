package proxy

import (
	"net/http"
	"strconv"
	"time"

	maintenancesetting "github.com/slipway-dev/slipway/internal/gateway/feature/maintenance"
)

// failureMaintenance is also the status in metrics: what was planned is no error of the server, and nobody is to be called for it.
const failureMaintenance = "maintenance"

// maintenance answers the requests of a route while it is closed.
type maintenance struct{ *maintenancesetting.Policy }

// admit refuses requests while the route is closed. Clients are told when to come again.
func (m maintenance) admit(e *exchange) bool {
	now := e.handler.options.Clock.Now().Round(0) // the clock on the wall, which may be set
	closed, ends := m.At(now)
	if !closed {
		return true
	}
	e.facts.planned = true
	if !ends.IsZero() {
		seconds := int64((ends.Sub(now) + time.Second - 1) / time.Second)
		e.w.Header()["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	}
	if m.Body == "" || e.speaksGRPC() {
		return e.refuse(http.StatusServiceUnavailable, failureMaintenance)
	}
	e.answer.failure = failureMaintenance
	e.answerWith(http.StatusServiceUnavailable, m.ContentType, []byte(m.Body))
	return false
}
