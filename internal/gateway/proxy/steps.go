package proxy

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// steps are what features do with the requests of one route. Set makes them, once for each route, in the order of order.go. A feature
// that a route does not ask for has none.
type steps struct {
	// admit lets a request in. false: it has answered.
	admit []func(e *exchange) bool
	// filter takes fields of the backend away.
	filter []func(response *upstream.Response)
	// tell adds fields to each final head, after the edits of the route: also to our own answers. hint changes heads of 1xx.
	tell, hint []func(e *exchange, header http.Header)
}
