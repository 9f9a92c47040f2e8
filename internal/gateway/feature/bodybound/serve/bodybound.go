// Package serve bounds the bodies of requests.
package serve

import (
	"github.com/slipway-dev/slipway/internal/gateway/exchange"
)

// Step is how many bytes the body of a request of a route may have.
type Step int64

// Admit refuses a body that is declared too large. It also bounds a body whose size is not known yet.
func (s Step) Admit(e *exchange.Exchange) bool { return e.LimitBody(int64(s)) }
