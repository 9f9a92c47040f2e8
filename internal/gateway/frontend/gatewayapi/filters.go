package gatewayapi

import (
	"net/http"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// filter is a filter of either kind of route.
type filter struct {
	kind     string
	request  *gatewayv1.HTTPHeaderFilter
	response *gatewayv1.HTTPHeaderFilter
	mirror   *gatewayv1.HTTPRequestMirrorFilter
	redirect *gatewayv1.HTTPRequestRedirectFilter
	rewrite  *gatewayv1.HTTPURLRewriteFilter
	cors     *gatewayv1.HTTPCORSFilter
}

func httpFilter(in *gatewayv1.HTTPRouteFilter) filter {
	return filter{
		kind: string(in.Type), request: in.RequestHeaderModifier, response: in.ResponseHeaderModifier,
		mirror: in.RequestMirror, redirect: in.RequestRedirect, rewrite: in.URLRewrite, cors: in.CORS,
	}
}

func grpcFilter(in *gatewayv1.GRPCRouteFilter) filter {
	return filter{kind: string(in.Type), request: in.RequestHeaderModifier, response: in.ResponseHeaderModifier, mirror: in.RequestMirror}
}

// filtersOf reads filters of either kind of route.
func filtersOf[T any](spec []T, read func(*T) filter) []filter {
	filters := make([]filter, 0, len(spec))
	for i := range spec {
		filters = append(filters, read(&spec[i]))
	}
	return filters
}

// actions are what filters do with requests and their responses.
type actions struct {
	requestHeaders, responseHeaders *model.HeaderEdit
	rewrite                         *model.Rewrite
	redirect                        *model.Redirect
	cors                            *cors.Rule
	mirrors                         []mirror
}

// mirror is a backend that gets copies: numerator of denominator requests.
type mirror struct {
	field                  string
	ref                    gatewayv1.BackendObjectReference
	numerator, denominator int32
}

// add adds what a filter does. A filter that is not known must not be left out: it may be one that
// restricts requests.
func (a *actions) add(field string, in filter) *fault {
	name, present, taken := a.state(in)
	switch {
	case name == "":
		return unsupportedf("%s.type: %q is not supported", field, in.kind)
	case !present:
		return unsupportedf("%s.%s: it is missing", field, name)
	case taken:
		return unsupportedf("%s: there is another filter of type %s", field, in.kind)
	}
	field += "." + name
	var f *fault
	switch gatewayv1.HTTPRouteFilterType(in.kind) {
	case gatewayv1.HTTPRouteFilterRequestHeaderModifier:
		a.requestHeaders = headerEdit(in.request)
	case gatewayv1.HTTPRouteFilterResponseHeaderModifier:
		a.responseHeaders = headerEdit(in.response)
	case gatewayv1.HTTPRouteFilterRequestRedirect:
		a.redirect, f = redirect(field, in.redirect)
	case gatewayv1.HTTPRouteFilterURLRewrite:
		a.rewrite, f = rewrite(field, in.rewrite)
	case gatewayv1.HTTPRouteFilterRequestMirror:
		f = a.mirror(field, in.mirror)
	case gatewayv1.HTTPRouteFilterCORS:
		a.cors = corsRule(in.cors)
	}
	return f
}

// state is the field of a filter, empty where its type is not known, whether it is set, and whether
// there was another one of the type. Of mirrors there may be several.
func (a *actions) state(in filter) (field string, present, taken bool) {
	switch gatewayv1.HTTPRouteFilterType(in.kind) {
	case gatewayv1.HTTPRouteFilterRequestHeaderModifier:
		return "requestHeaderModifier", in.request != nil, a.requestHeaders != nil
	case gatewayv1.HTTPRouteFilterResponseHeaderModifier:
		return "responseHeaderModifier", in.response != nil, a.responseHeaders != nil
	case gatewayv1.HTTPRouteFilterRequestRedirect:
		return "requestRedirect", in.redirect != nil, a.redirect != nil
	case gatewayv1.HTTPRouteFilterURLRewrite:
		return "urlRewrite", in.rewrite != nil, a.rewrite != nil
	case gatewayv1.HTTPRouteFilterRequestMirror:
		return "requestMirror", in.mirror != nil, false
	case gatewayv1.HTTPRouteFilterCORS:
		return "cors", in.cors != nil, a.cors != nil
	default:
		return "", false, false
	}
}

func headerEdit(in *gatewayv1.HTTPHeaderFilter) *model.HeaderEdit {
	fields := func(in []gatewayv1.HTTPHeader) []model.HeaderField {
		var out []model.HeaderField
		for _, field := range in {
			out = append(out, model.HeaderField{Name: string(field.Name), Value: field.Value})
		}
		return out
	}
	return &model.HeaderEdit{Remove: in.Remove, Set: fields(in.Set), Add: fields(in.Add)}
}

func redirect(field string, in *gatewayv1.HTTPRequestRedirectFilter) (*model.Redirect, *fault) {
	full, prefix, f := pathModifier(field+".path", in.Path)
	return &model.Redirect{
		StatusCode: value(in.StatusCode, http.StatusFound), Scheme: value(in.Scheme, ""), Host: string(value(in.Hostname, "")),
		Port: value(in.Port, 0), FullPath: full, PathPrefix: prefix, ListenerPort: true,
	}, f
}

func rewrite(field string, in *gatewayv1.HTTPURLRewriteFilter) (*model.Rewrite, *fault) {
	full, prefix, f := pathModifier(field+".path", in.Path)
	return &model.Rewrite{Host: string(value(in.Hostname, "")), FullPath: full, PathPrefix: prefix}, f
}

// pathModifier reads what replaces a path. An empty replacement is the root.
func pathModifier(field string, in *gatewayv1.HTTPPathModifier) (full, prefix string, f *fault) {
	if in == nil {
		return "", "", nil
	}
	orRoot := func(path *string) string {
		if text := value(path, ""); text != "" {
			return text
		}
		return "/"
	}
	switch in.Type {
	case gatewayv1.FullPathHTTPPathModifier:
		return orRoot(in.ReplaceFullPath), "", nil
	case gatewayv1.PrefixMatchHTTPPathModifier:
		return "", orRoot(in.ReplacePrefixMatch), nil
	default:
		return "", "", unsupportedf("%s.type: %q is not supported", field, in.Type)
	}
}

// mirror adds a backend that gets copies of requests.
func (a *actions) mirror(field string, in *gatewayv1.HTTPRequestMirrorFilter) *fault {
	m := mirror{field: field + ".backendRef", ref: in.BackendRef, numerator: 100, denominator: 100}
	switch {
	case in.Percent != nil && in.Fraction != nil:
		return unsupportedf("%s: only one of percent and fraction may be set", field)
	case in.Percent != nil:
		m.numerator = *in.Percent
	case in.Fraction != nil:
		m.numerator, m.denominator = in.Fraction.Numerator, value(in.Fraction.Denominator, 100)
	}
	if m.numerator < 0 || m.denominator < 1 || m.numerator > m.denominator {
		return unsupportedf("%s: %d of %d is no part of the requests", field, m.numerator, m.denominator)
	}
	a.mirrors = append(a.mirrors, m)
	return nil
}

func corsRule(in *gatewayv1.HTTPCORSFilter) *cors.Rule {
	maxAge := in.MaxAge
	if maxAge == 0 {
		maxAge = 5 // the default of the field
	}
	return &cors.Rule{
		AllowOrigins: texts(in.AllowOrigins), AllowMethods: texts(in.AllowMethods), AllowHeaders: texts(in.AllowHeaders),
		ExposeHeaders: texts(in.ExposeHeaders), AllowCredentials: value(in.AllowCredentials, false), MaxAgeSeconds: &maxAge, Wildcards: true,
	}
}

func texts[T ~string](in []T) []string {
	var out []string
	for _, text := range in {
		out = append(out, string(text))
	}
	return out
}

// defaultBackendTimeout is how long a backend may take to begin an answer where the rule says
// nothing, as with APIGateways.
const defaultBackendTimeout = time.Minute

// timeouts reads how long requests may take. What a rule says holds in the place of the defaults, also that there is no bound.
func (r *rule) timeouts(in *gatewayv1.HTTPRouteTimeouts) *fault {
	if in == nil || in.Request == nil && in.BackendRequest == nil {
		r.action.Timeouts.Backend = defaultBackendTimeout
		return nil
	}
	r.action.Timeouts.Patient = true
	var f *fault
	if r.action.Timeouts.Request, f = duration(r.field+".timeouts.request", in.Request); f != nil {
		return f
	}
	// It lasts until the response has ended, not only until it begins.
	r.action.Timeouts.Attempt, f = duration(r.field+".timeouts.backendRequest", in.BackendRequest)
	return f
}

// duration reads a duration of GEP-2257, which the schema has checked. Zero, and none, is no bound.
func duration(field string, in *gatewayv1.Duration) (time.Duration, *fault) {
	if in == nil {
		return 0, nil
	}
	d, err := time.ParseDuration(string(*in))
	if err != nil || d < 0 {
		return 0, unsupportedf("%s: %q is not a duration", field, *in)
	}
	return d, nil
}

// defaultAttempts is how often a request is sent again that did not reach its backend, as with
// APIGateways.
const defaultAttempts = 2

// retry adds to what is retried anyway. Who asks for retries means connections that break off and attempts that take too long,
// too, whatever the codes are (HTTPRouteRetry in the Gateway API).
func (r *rule) retry(in *gatewayv1.HTTPRouteRetry) *fault {
	if in == nil {
		return nil
	}
	r.action.Retries.Attempts = value(in.Attempts, defaultAttempts)
	r.action.Retries.On |= model.OnReset | model.OnTimeout
	for _, code := range in.Codes {
		one := model.StatusesOf(int(code))
		if !one.Has(int(code)) {
			return unsupportedf("%s.retry.codes: %d is not from 400 to 599", r.field, code)
		}
		for i := range one {
			r.action.Retries.Statuses[i] |= one[i]
		}
	}
	var f *fault
	r.action.Retries.Wait, f = duration(r.field+".retry.backoff", in.Backoff)
	return f
}
