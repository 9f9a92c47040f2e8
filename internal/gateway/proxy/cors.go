package proxy

import (
	"net/http"
	"slices"
	"strings"

	corssetting "github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// cors lets pages of other origins use a route.
type cors struct{ *corssetting.Policy }

// admit adds the CORS response fields for a page of another origin. It returns false
// if the request was a preflight request, which it has answered.
func (c cors) admit(e *exchange) bool {
	origin := e.r.Header.Get("Origin")
	header := e.w.Header()
	header["Vary"] = append(header["Vary"], "Origin")
	if origin == "" {
		return true
	}
	preflight := e.r.Method == http.MethodOptions && e.r.Header.Get("Access-Control-Request-Method") != ""
	allowed, ok := c.AllowOrigin(origin)
	if ok {
		setUnlessEmpty(header, "Access-Control-Allow-Origin", allowed)
		if c.AllowCredentials {
			header["Access-Control-Allow-Credentials"] = []string{"true"}
		}
	}
	if ok && (!preflight || c.ExposeOnPreflight) {
		setUnlessEmpty(header, "Access-Control-Expose-Headers", c.ExposeHeaders)
	}
	if !preflight {
		return true
	}
	if ok {
		setUnlessEmpty(header, "Access-Control-Allow-Methods", c.Methods(e.r.Header.Get("Access-Control-Request-Method")))
		setUnlessEmpty(header, "Access-Control-Allow-Headers", c.Headers(strings.Join(e.r.Header["Access-Control-Request-Headers"], ", ")))
		setUnlessEmpty(header, "Access-Control-Max-Age", c.MaxAge)
	}
	e.answerWith(http.StatusNoContent, "", nil)
	return false
}

func setUnlessEmpty(header http.Header, name, value string) {
	if value != "" {
		header[name] = []string{value}
	}
}

// filter removes the backend's CORS fields, because the route defines them.
func (cors) filter(response *upstream.Response) {
	response.Fields = slices.DeleteFunc(response.Fields, func(field upstream.Field) bool {
		return len(field.Name) > len("Access-Control-") && strings.EqualFold(field.Name[:len("Access-Control-")], "Access-Control-")
	})
}
