package proxy

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	maintenancesetting "github.com/slipway-dev/slipway/internal/gateway/feature/maintenance"
)

// maintenance answers the requests of a route while it is closed.
type maintenance struct {
	*maintenancesetting.Policy

	// last is what was found last. It is the same until a window begins or ends.
	last *atomic.Pointer[closure]
}

// closure is whether a route is closed, from a time until another one. A zero end means for ever.
type closure struct {
	closed     bool
	from, ends time.Time
}

func newMaintenance(policy *maintenancesetting.Policy) maintenance {
	return maintenance{Policy: policy, last: &atomic.Pointer[closure]{}}
}

// admit refuses requests while the route is closed. Clients are told when to come again.
func (m maintenance) admit(e *exchange) bool {
	now := e.handler.options.Clock.Now()
	c := m.last.Load()
	if c == nil || now.Before(c.from) || !c.ends.IsZero() && !now.Before(c.ends) {
		c = &closure{from: now}
		c.closed, c.ends = m.At(now)
		m.last.Store(c)
	}
	if !c.closed {
		return true
	}
	if !c.ends.IsZero() {
		seconds := int64((c.ends.Sub(now) + time.Second - 1) / time.Second)
		e.w.Header()["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	}
	const failure = "maintenance"
	if len(m.Body) == 0 || e.speaksGRPC() {
		return e.refuse(http.StatusServiceUnavailable, failure)
	}
	e.answer.failure = failure
	e.answerWith(http.StatusServiceUnavailable, m.ContentType, m.Body)
	return false
}
