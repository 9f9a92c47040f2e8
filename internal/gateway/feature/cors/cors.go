// Package cors says what pages of other origins may do. It is pure.
package cors

import (
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

const defaultMaxAgeSeconds = 5 // of a Rule

// Policy defines what pages of other origins may do. The lists are joined already, ready to
// be sent.
type Policy struct {
	AllowMethods  string
	AllowHeaders  string
	ExposeHeaders string
	// ExposeOnPreflight means that ExposeHeaders are sent for preflight requests too.
	ExposeOnPreflight bool
	AllowCredentials  bool
	// MaxAge is in seconds.
	MaxAge string

	any         bool
	echoMethods bool // the answer is the method that the preflight request asks for
	echoHeaders bool
	origins     map[string]bool
	wildcards   []originWildcard
}

// originWildcard is a pattern such as https://*.example.com:8443, split at the asterisk.
type originWildcard struct{ scheme, rest string }

// AllowOrigin returns the value of Access-Control-Allow-Origin for an origin. It returns
// false if the origin is not allowed.
func (c *Policy) AllowOrigin(origin string) (string, bool) {
	switch {
	case c.any && c.AllowCredentials: // browsers accept no asterisk then
		return origin, true
	case c.any:
		return "*", true
	}
	origin = strings.ToLower(origin)
	if c.origins[origin] {
		return origin, true
	}
	for _, w := range c.wildcards {
		below, isScheme := strings.CutPrefix(origin, w.scheme)
		label, isBelow := strings.CutSuffix(below, w.rest)
		if isScheme && isBelow && label != "" && !strings.ContainsAny(label, "/:@") {
			return origin, true
		}
	}
	return "", false
}

// Methods returns the value of Access-Control-Allow-Methods for a preflight request that
// asks for a method.
func (c *Policy) Methods(asked string) string {
	switch {
	case !c.echoMethods:
		return c.AllowMethods
	case fieldname.IsToken(asked):
		return asked
	default:
		return ""
	}
}

// Headers returns the value of Access-Control-Allow-Headers for a preflight request that
// asks for a list of fields.
func (c *Policy) Headers(asked string) string {
	if !c.echoHeaders {
		return c.AllowHeaders
	}
	for name := range strings.SplitSeq(asked, ",") {
		if !fieldname.IsToken(strings.Trim(name, " \t")) {
			return ""
		}
	}
	return asked
}

// allowWildcards makes asterisks in the lists mean everything, with credentials too. A
// browser that sends credentials takes an asterisk for a name, so it gets what it asks for.
func (c *Policy) allowWildcards(in *Rule, methods []string) {
	c.ExposeOnPreflight = true
	if !c.AllowCredentials {
		return
	}
	c.echoMethods, c.echoHeaders = slices.Contains(methods, "*"), slices.Contains(in.AllowHeaders, "*")
	exposed := slices.DeleteFunc(slices.Clone(in.ExposeHeaders), func(name string) bool { return name == "*" })
	c.ExposeHeaders = strings.Join(exposed, ", ")
}

// Rule says what pages of other origins may do.
type Rule struct {
	// AllowOrigins are origins such as https://a.example.com, with "*" for a part of the
	// name, or "*" for every origin.
	AllowOrigins []string
	// AllowMethods are the allowed methods. Default: those of the rule, or GET, HEAD and
	// POST.
	AllowMethods     []string
	AllowHeaders     []string
	ExposeHeaders    []string
	AllowCredentials bool
	// MaxAgeSeconds is how long a browser may keep the answer. Default 5.
	MaxAgeSeconds *int32
	// Wildcards means that "*" in a list means everything also with AllowCredentials, where
	// browsers need names: they get those that they ask for. "*" in ExposeHeaders is left
	// out then. The answer to a preflight request has ExposeHeaders too, as HTTPRoute asks
	// for. Without Wildcards, "*" in AllowOrigins cannot be combined with AllowCredentials.
	Wildcards bool
}
