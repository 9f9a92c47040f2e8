package table

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

const defaultMaxAgeSeconds = 5 // of a CORSRule

// compileActions compiles everything of a rule except its match and its backends. The API
// server has refused most invalid values already. But a file and an older schema have not.
func compileActions(e *compiled, rule *Rule) *Fault {
	answers := 0
	for _, is := range []bool{len(rule.Backends) > 0, rule.Redirect != nil, rule.Direct != nil} {
		if is {
			answers++
		}
	}
	if answers > 1 || (answers == 0 && !rule.StrictShares) {
		return invalid("exactly one of backends, redirect and a direct response must be set")
	}
	for _, compile := range []func(*compiled, *Rule) *Fault{
		compileRewrite, compileHeaderEdits, compileRedirect, compileDirect, compileCORS, compileMirrors, compileLimits, compileAuth,
	} {
		if f := compile(e, rule); f != nil {
			return f
		}
	}
	e.protection = newProtection(e.Route, rule)
	return nil
}

func compileRewrite(e *compiled, rule *Rule) *Fault {
	if rule.Rewrite == nil {
		return nil
	}
	rewrite := *rule.Rewrite
	if rewrite.Host != "" && !isHostName(rewrite.Host) {
		return invalid("rewrite.host: %q is not a lower case DNS name", rewrite.Host)
	}
	for _, path := range []string{rewrite.FullPath, rewrite.PathPrefix} {
		if f := checkPath("rewrite", path); f != nil {
			return f
		}
	}
	if rewrite.PathPrefix != "" {
		if e.pathType != PathPrefix || rewrite.FullPath != "" {
			return invalid("rewrite.pathPrefix needs pathType Prefix and cannot be combined with rewrite.path")
		}
		rewrite.segments = len(e.path.segments())
		if !everyReading(func(prefix string) bool {
			rewrite.prefixes = append(rewrite.prefixes, prefix)
			return true
		}, rewrite.PathPrefix) {
			rewrite.prefixes = nil // too many readings, so no path is known to stay below it
		}
	}
	e.Rewrite = &rewrite
	return nil
}

// checkPath checks a path that may be empty.
func checkPath(field, path string) *Fault {
	if path == "" {
		return nil
	}
	if _, err := parseSpecPath(path); err != nil {
		return invalid("%s: %q cannot be a path: %v", field, path, err)
	}
	return nil
}

func isHostName(name string) bool {
	return hostPattern.MatchString(name) && !strings.HasPrefix(name, "*")
}

func compileHeaderEdits(e *compiled, rule *Rule) *Fault {
	var f *Fault
	if e.RequestHeaders, f = newHeaderEdit("requestHeaders", rule.RequestHeaders); f != nil {
		return f
	}
	e.ResponseHeaders, f = newHeaderEdit("responseHeaders", rule.ResponseHeaders)
	return f
}

func newHeaderEdit(field string, in *HeaderEdit) (*HeaderEdit, *Fault) {
	if in == nil {
		return nil, nil
	}
	edit := &HeaderEdit{}
	for _, name := range in.Remove {
		canonical, f := editableHeader(field+".remove", name)
		if f != nil {
			return nil, f
		}
		edit.Remove = append(edit.Remove, canonical)
	}
	var f *Fault
	if edit.Set, f = newHeaderFields(field+".set", in.Set); f != nil {
		return nil, f
	}
	edit.Add, f = newHeaderFields(field+".add", in.Add)
	return edit, f
}

func newHeaderFields(field string, in []HeaderField) ([]HeaderField, *Fault) {
	fields := make([]HeaderField, 0, len(in))
	for _, header := range in {
		name, f := editableHeader(field, header.Name)
		if f != nil {
			return nil, f
		}
		if !isHeaderValue(header.Value) {
			return nil, invalid("%s: the value of %s holds a control character", field, name)
		}
		fields = append(fields, HeaderField{name, header.Value})
	}
	return fields, nil
}

// editableHeader returns the canonical form of a header name that a rule may change.
func editableHeader(field, name string) (string, *Fault) {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	if !isToken(canonical) {
		return "", invalid("%s: %q cannot be the name of a header", field, name)
	}
	// HTTP itself needs these fields, and rewrite changes Host. Changing them here could
	// change where a message ends or which host it is for.
	if canonical == "Trailer" || fieldname.OfConnection(canonical) {
		return "", invalid("%s: %s cannot be changed", field, canonical)
	}
	return canonical, nil
}

func isHeaderValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func compileRedirect(e *compiled, rule *Rule) *Fault {
	if rule.Redirect == nil {
		return nil
	}
	redirect := *rule.Redirect
	if !slices.Contains([]int{301, 302, 303, 307, 308}, redirect.StatusCode) {
		return invalid("redirect.statusCode: %d is not one of 301, 302, 303, 307 and 308", redirect.StatusCode)
	}
	if !slices.Contains([]string{"", "http", "https"}, redirect.Scheme) {
		return invalid("redirect.scheme: %q is neither http nor https", redirect.Scheme)
	}
	if redirect.Host != "" && !isHostName(redirect.Host) {
		return invalid("redirect.host: %q is not a lower case DNS name", redirect.Host)
	}
	if redirect.Port < 0 || redirect.Port > 65535 {
		return invalid("redirect.port: %d is not a port", redirect.Port)
	}
	if f := checkPath("redirect.path", redirect.FullPath); f != nil {
		return f
	}
	e.Redirect = &redirect
	return nil
}

func compileDirect(e *compiled, rule *Rule) *Fault {
	if rule.Direct == nil {
		return nil
	}
	direct := *rule.Direct
	if direct.StatusCode < 200 || direct.StatusCode > 599 {
		return invalid("directResponse.statusCode: %d is not from 200 to 599", direct.StatusCode)
	}
	if !isHeaderValue(direct.ContentType) {
		return invalid("directResponse.contentType holds a control character")
	}
	e.Direct = &direct
	return nil
}

func compileCORS(e *compiled, rule *Rule) *Fault {
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
	if !isHeaderValue(cors.AllowMethods + cors.AllowHeaders + cors.ExposeHeaders) {
		return invalid("cors: a method or header holds a control character")
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
	if cors.any && cors.AllowCredentials {
		return invalid("cors: allowCredentials needs origins by name in allowOrigins, not '*'")
	}
	e.CORS = cors
	return nil
}

func compileMirrors(_ *compiled, rule *Rule) *Fault {
	for _, mirror := range rule.Mirrors {
		if mirror.Numerator > mirror.Denominator || mirror.Denominator == 0 {
			return invalid("mirror: %d/%d is not a fraction from 0 to 1", mirror.Numerator, mirror.Denominator)
		}
	}
	return nil
}
