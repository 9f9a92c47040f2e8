package table

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

// These are the defaults of a route.
const (
	defaultBackendTimeout = time.Minute
	defaultAttempts       = 2
	defaultMaxAgeSeconds  = 5
)

// compileActions compiles everything of a route except its match and its backends. The API
// server has refused most invalid values already. But a file and an older schema have not.
func (c *compiler) compileActions(e *compiled, spec *slipwayv1alpha1.Route) *fault {
	answers := 0
	for _, is := range []bool{spec.BackendService != nil, len(spec.Backends) > 0, spec.Redirect != nil, spec.DirectResponse != nil} {
		if is {
			answers++
		}
	}
	if answers != 1 {
		return invalid("exactly one of backendService, backends, redirect and directResponse must be set")
	}
	for _, compile := range []func(*compiled, *slipwayv1alpha1.Route) *fault{
		compileRewrite, compileHeaderEdits, compileRedirect, compileDirect, compileCORS, compileLimits, compileRetries, c.compileAuth,
	} {
		if f := compile(e, spec); f != nil {
			return f
		}
	}
	e.protection = newProtection(e.Route, spec)
	return nil
}

func compileRewrite(e *compiled, spec *slipwayv1alpha1.Route) *fault {
	if spec.Rewrite == nil {
		return nil
	}
	rewrite := &Rewrite{Host: string(spec.Rewrite.Host), path: string(spec.Rewrite.Path), prefix: string(spec.Rewrite.PathPrefix)}
	if rewrite.Host != "" && !isHostName(rewrite.Host) {
		return invalid("rewrite.host: %q is not a lower case DNS name", rewrite.Host)
	}
	for _, path := range []string{rewrite.path, rewrite.prefix} {
		if _, err := parseSpecPath(orDefault(path, "/")); err != nil {
			return invalid("rewrite: %q cannot be a path: %v", path, err)
		}
	}
	if rewrite.prefix != "" {
		if e.pathType != slipwayv1alpha1.PathPrefix || rewrite.path != "" {
			return invalid("rewrite.pathPrefix needs pathType Prefix and cannot be combined with rewrite.path")
		}
		rewrite.segments = len(e.path.segments())
		if !everyReading(func(prefix string) bool {
			rewrite.prefixes = append(rewrite.prefixes, prefix)
			return true
		}, rewrite.prefix) {
			rewrite.prefixes = nil // too many readings, so no path is known to stay below it
		}
	}
	e.Rewrite = rewrite
	return nil
}

func isHostName(name string) bool {
	return hostPattern.MatchString(name) && !strings.HasPrefix(name, "*")
}

func compileHeaderEdits(e *compiled, spec *slipwayv1alpha1.Route) *fault {
	var f *fault
	if e.RequestHeaders, f = newHeaderEdit("requestHeaders", spec.RequestHeaders); f != nil {
		return f
	}
	e.ResponseHeaders, f = newHeaderEdit("responseHeaders", spec.ResponseHeaders)
	return f
}

func newHeaderEdit(field string, spec *slipwayv1alpha1.HeaderEdit) (*HeaderEdit, *fault) {
	if spec == nil {
		return nil, nil
	}
	edit := &HeaderEdit{}
	for _, name := range spec.Remove {
		canonical, f := editableHeader(field+".remove", name)
		if f != nil {
			return nil, f
		}
		edit.Remove = append(edit.Remove, canonical)
	}
	var f *fault
	if edit.Set, f = newHeaderFields(field+".set", spec.Set); f != nil {
		return nil, f
	}
	edit.Add, f = newHeaderFields(field+".add", spec.Add)
	return edit, f
}

func newHeaderFields(field string, spec []slipwayv1alpha1.HeaderField) ([]HeaderField, *fault) {
	fields := make([]HeaderField, 0, len(spec))
	for _, header := range spec {
		name, f := editableHeader(field, header.Name)
		if f != nil {
			return nil, f
		}
		if !isHeaderValue(string(header.Value)) {
			return nil, invalid("%s: the value of %s holds a control character", field, name)
		}
		fields = append(fields, HeaderField{name, string(header.Value)})
	}
	return fields, nil
}

// editableHeader returns the canonical form of a header name that a route may change.
func editableHeader[T ~string](field string, name T) (string, *fault) {
	canonical := textproto.CanonicalMIMEHeaderKey(string(name))
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

func compileRedirect(e *compiled, spec *slipwayv1alpha1.Route) *fault {
	if spec.Redirect == nil {
		return nil
	}
	in := spec.Redirect
	redirect := &Redirect{StatusCode: int(value(in.StatusCode, http.StatusFound)), scheme: in.Scheme, host: string(in.Host), port: value(in.Port, 0), path: string(in.Path)}
	if !slices.Contains([]int{301, 302, 303, 307, 308}, redirect.StatusCode) {
		return invalid("redirect.statusCode: %d is not one of 301, 302, 303, 307 and 308", redirect.StatusCode)
	}
	if !slices.Contains([]string{"", "http", "https"}, redirect.scheme) {
		return invalid("redirect.scheme: %q is neither http nor https", redirect.scheme)
	}
	if redirect.host != "" && !isHostName(redirect.host) {
		return invalid("redirect.host: %q is not a lower case DNS name", redirect.host)
	}
	if redirect.port < 0 || redirect.port > 65535 {
		return invalid("redirect.port: %d is not a port", redirect.port)
	}
	if _, err := parseSpecPath(orDefault(redirect.path, "/")); err != nil {
		return invalid("redirect.path: %q cannot be a path: %v", redirect.path, err)
	}
	e.Redirect = redirect
	return nil
}

func compileDirect(e *compiled, spec *slipwayv1alpha1.Route) *fault {
	if spec.DirectResponse == nil {
		return nil
	}
	in := spec.DirectResponse
	if in.StatusCode < 200 || in.StatusCode > 599 {
		return invalid("directResponse.statusCode: %d is not from 200 to 599", in.StatusCode)
	}
	if !isHeaderValue(string(in.ContentType)) {
		return invalid("directResponse.contentType holds a control character")
	}
	e.Direct = &DirectResponse{
		StatusCode:  int(in.StatusCode),
		ContentType: orDefault(string(in.ContentType), "text/plain; charset=utf-8"),
		Body:        []byte(in.Body),
	}
	return nil
}

func compileCORS(e *compiled, spec *slipwayv1alpha1.Route) *fault {
	if spec.CORS == nil {
		return nil
	}
	in := spec.CORS
	methods := in.AllowMethods
	if len(methods) == 0 {
		methods = spec.Methods
	}
	if len(methods) == 0 {
		methods = []slipwayv1alpha1.HTTPMethod{http.MethodGet, http.MethodHead, http.MethodPost}
	}
	cors := &CORS{
		AllowMethods: join(methods), AllowHeaders: join(in.AllowHeaders), ExposeHeaders: join(in.ExposeHeaders),
		AllowCredentials: in.AllowCredentials,
		MaxAge:           strconv.Itoa(int(value(in.MaxAgeSeconds, defaultMaxAgeSeconds))),
		origins:          map[string]bool{},
	}
	if !isHeaderValue(cors.AllowMethods + cors.AllowHeaders + cors.ExposeHeaders) {
		return invalid("cors: a method or header holds a control character")
	}
	for _, origin := range in.AllowOrigins {
		scheme, rest, wildcard := strings.Cut(string(origin), "*")
		switch {
		case origin == "*":
			cors.any = true
		case wildcard:
			cors.wildcards = append(cors.wildcards, originWildcard{scheme, rest})
		default:
			cors.origins[string(origin)] = true
		}
	}
	if cors.any && cors.AllowCredentials {
		return invalid("cors: allowCredentials needs origins by name in allowOrigins, not '*'")
	}
	e.CORS = cors
	return nil
}

func join[T ~string](words []T) string {
	text := make([]string, len(words))
	for i, word := range words {
		text[i] = string(word)
	}
	return strings.Join(text, ", ")
}

// value returns what the pointer points to, or the default.
func value[T any](pointer *T, fallback T) T {
	if pointer == nil {
		return fallback
	}
	return *pointer
}
