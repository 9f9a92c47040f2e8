// Package serve lets in the clients of a route that come from some addresses.
package serve

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/address"
)

// Step is that of a route.
type Step struct{ *address.Addresses }

// Admit refuses all other clients.
func (s Step) Admit(e *exchange.Exchange) bool {
	return s.Addresses.Admit(e.Client.Origin) || e.Refuse(http.StatusForbidden, "client_address")
}
