package table

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

const defaultMaxAgeSeconds = 5 // of a CORSRule

// CORS defines what pages of other origins may do. The lists are joined already, ready to
// be sent.
type CORS struct {
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
func (c *CORS) AllowOrigin(origin string) (string, bool) {
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
func (c *CORS) Methods(asked string) string {
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
func (c *CORS) Headers(asked string) string {
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

func compileCORS(e *compiled, rule *Rule) *model.Fault {
	if rule.CORS == nil {
		return nil
	}
	in := rule.CORS
	methods := in.AllowMethods
	if len(methods) == 0 {
		methods = rule.Methods
	}
	if len(methods) == 0 {
		methods = []string{http.MethodGet, http.MethodHead, http.MethodPost}
	}
	maxAge := int32(defaultMaxAgeSeconds)
	if in.MaxAgeSeconds != nil {
		maxAge = *in.MaxAgeSeconds
	}
	cors := &CORS{
		AllowMethods: strings.Join(methods, ", "), AllowHeaders: strings.Join(in.AllowHeaders, ", "), ExposeHeaders: strings.Join(in.ExposeHeaders, ", "),
		AllowCredentials: in.AllowCredentials,
		MaxAge:           strconv.Itoa(int(maxAge)),
		origins:          map[string]bool{},
	}
	if !fieldname.IsValue(cors.AllowMethods + cors.AllowHeaders + cors.ExposeHeaders) {
		return model.Invalid("cors: a method or header holds a control character")
	}
	for _, origin := range in.AllowOrigins {
		scheme, rest, wildcard := strings.Cut(origin, "*")
		switch {
		case origin == "*":
			cors.any = true
		case wildcard:
			cors.wildcards = append(cors.wildcards, originWildcard{scheme, rest})
		default:
			cors.origins[origin] = true
		}
	}
	if in.Wildcards {
		cors.allowWildcards(in, methods)
	} else if cors.any && cors.AllowCredentials {
		return model.Invalid("cors: allowCredentials needs origins by name in allowOrigins, not '*'")
	}
	e.CORS = cors
	return nil
}

// allowWildcards makes asterisks in the lists mean everything, with credentials too. A
// browser that sends credentials takes an asterisk for a name, so it gets what it asks for.
func (c *CORS) allowWildcards(in *CORSRule, methods []string) {
	c.ExposeOnPreflight = true
	if !c.AllowCredentials {
		return
	}
	c.echoMethods, c.echoHeaders = slices.Contains(methods, "*"), slices.Contains(in.AllowHeaders, "*")
	exposed := slices.DeleteFunc(slices.Clone(in.ExposeHeaders), func(name string) bool { return name == "*" })
	c.ExposeHeaders = strings.Join(exposed, ", ")
}
