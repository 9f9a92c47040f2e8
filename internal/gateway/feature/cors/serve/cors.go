// Package serve lets pages of other origins use a route.
package serve

import (
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Step is that of a route.
type Step struct{ *cors.Policy }

// Admit adds the CORS response fields for a page of another origin. It returns false
// if the request was a preflight request, which it has answered.
func (s Step) Admit(e *exchange.Exchange) bool {
	origin := e.Header().Get("Origin")
	header := e.Head()
	header["Vary"] = append(header["Vary"], "Origin")
	if origin == "" {
		return true
	}
	preflight := e.Method() == http.MethodOptions && e.Header().Get("Access-Control-Request-Method") != ""
	allowed, ok := s.AllowOrigin(origin)
	if ok {
		setUnlessEmpty(header, "Access-Control-Allow-Origin", allowed)
		if s.AllowCredentials {
			header["Access-Control-Allow-Credentials"] = []string{"true"}
		}
	}
	if ok && (!preflight || s.ExposeOnPreflight) {
		setUnlessEmpty(header, "Access-Control-Expose-Headers", s.ExposeHeaders)
	}
	if !preflight {
		return true
	}
	if ok {
		setUnlessEmpty(header, "Access-Control-Allow-Methods", s.Methods(e.Header().Get("Access-Control-Request-Method")))
		setUnlessEmpty(header, "Access-Control-Allow-Headers", s.Headers(strings.Join(e.Header()["Access-Control-Request-Headers"], ", ")))
		setUnlessEmpty(header, "Access-Control-Max-Age", s.MaxAge)
	}
	e.AnswerWith(http.StatusNoContent, "", nil)
	return false
}

func setUnlessEmpty(header http.Header, name, value string) {
	if value != "" {
		header[name] = []string{value}
	}
}

// Filter removes the backend's CORS fields, because the route defines them.
func (Step) Filter(response *upstream.Response) {
	response.Fields = slices.DeleteFunc(response.Fields, func(field upstream.Field) bool {
		return len(field.Name) > len("Access-Control-") && strings.EqualFold(field.Name[:len("Access-Control-")], "Access-Control-")
	})
}
