package proxy

import (
	"net/http"

	addresssetting "github.com/slipway-dev/slipway/internal/gateway/feature/address"
)

// address lets in the clients of a route that come from some addresses.
type address struct{ *addresssetting.Addresses }

func (a address) admit(e *exchange) bool {
	return a.Admit(e.client.origin) || e.refuse(http.StatusForbidden, "client_address")
}
