package proxy

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// address lets in the clients of a route that come from some addresses.
type address struct{ *table.Addresses }

func (a address) admit(e *exchange) bool {
	return a.Admit(e.client.origin) || e.refuse(http.StatusForbidden, "client_address")
}
