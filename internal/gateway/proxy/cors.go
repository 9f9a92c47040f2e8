package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// allowOrigin adds the CORS response fields for a page of another origin. It returns true
// if the request was a preflight request, which it has answered.
func (e *exchange) allowOrigin() bool {
	origin := e.r.Header.Get("Origin")
	header := e.w.Header()
	header["Vary"] = append(header["Vary"], "Origin")
	if origin == "" {
		return false
	}
	cors := e.route.CORS
	preflight := e.r.Method == http.MethodOptions && e.r.Header.Get("Access-Control-Request-Method") != ""
	allowed, ok := cors.AllowOrigin(origin)
	if ok {
		setUnlessEmpty(header, "Access-Control-Allow-Origin", allowed)
		if cors.AllowCredentials {
			header["Access-Control-Allow-Credentials"] = []string{"true"}
		}
	}
	if ok && (!preflight || cors.ExposeOnPreflight) {
		setUnlessEmpty(header, "Access-Control-Expose-Headers", cors.ExposeHeaders)
	}
	if !preflight {
		return false
	}
	if ok {
		setUnlessEmpty(header, "Access-Control-Allow-Methods", cors.Methods(e.r.Header.Get("Access-Control-Request-Method")))
		setUnlessEmpty(header, "Access-Control-Allow-Headers", cors.Headers(strings.Join(e.r.Header["Access-Control-Request-Headers"], ", ")))
		setUnlessEmpty(header, "Access-Control-Max-Age", cors.MaxAge)
	}
	e.answerWith(http.StatusNoContent, "", nil)
	return true
}

func setUnlessEmpty(header http.Header, name, value string) {
	if value != "" {
		header[name] = []string{value}
	}
}

// dropCORS removes the backend's CORS fields, because the route defines them.
func dropCORS(response *upstream.Response) {
	response.Fields = slices.DeleteFunc(response.Fields, func(field upstream.Field) bool {
		return len(field.Name) > len("Access-Control-") && strings.EqualFold(field.Name[:len("Access-Control-")], "Access-Control-")
	})
}
