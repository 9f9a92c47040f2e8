package gatewayapi

import (
	"fmt"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// httpRules reads the rules of an HTTPRoute.
func httpRules(of *gatewayv1.HTTPRoute) []rule {
	rules := make([]rule, 0, len(of.Spec.Rules))
	for i := range of.Spec.Rules {
		rules = append(rules, httpRule(i, &of.Spec.Rules[i]))
	}
	return rules
}

func httpRule(index int, spec *gatewayv1.HTTPRouteRule) rule {
	r := newRule(index, spec.Name)
	r.matches = matchesOf(&r, spec.Matches, httpMatch)
	r.filters(filtersOf(spec.Filters, httpFilter))
	for i := range spec.BackendRefs {
		ref := &spec.BackendRefs[i]
		r.backend(i, ref.BackendRef, filtersOf(ref.Filters, httpFilter))
	}
	r.refuse(r.timeouts(spec.Timeouts))
	r.refuse(r.retry(spec.Retry))
	r.refuse(r.session(spec.SessionPersistence))
	if r.redirect != nil && len(r.backends) > 0 {
		r.refuse(faultf(gatewayv1.RouteReasonIncompatibleFilters, "%s: a rule that redirects has no backendRefs", r.field))
	}
	if r.redirect != nil && r.rewrite != nil {
		r.refuse(faultf(gatewayv1.RouteReasonIncompatibleFilters, "%s: a rule cannot redirect and rewrite", r.field))
	}
	r.checkPrefix()
	return r
}

// httpMatch reads a match.
func httpMatch(field string, spec *gatewayv1.HTTPRouteMatch) (match, *fault) {
	m := match{pathType: table.PathPrefix, path: "/", method: string(value(spec.Method, ""))}
	path := value(spec.Path, gatewayv1.HTTPPathMatch{})
	m.path = value(path.Value, "/")
	switch kind := value(path.Type, gatewayv1.PathMatchPathPrefix); kind {
	case gatewayv1.PathMatchExact:
		m.pathType = table.PathExact
	case gatewayv1.PathMatchPathPrefix:
	case gatewayv1.PathMatchRegularExpression:
		m.pathType = table.PathRegularExpression
	default:
		return m, unsupportedf("%s.path.type: %q is not supported", field, kind)
	}
	var f *fault
	m.headers, f = headersOf(field, spec.Headers, func(h gatewayv1.HTTPHeaderMatch) (name, kind, text string) {
		return string(h.Name), string(value(h.Type, gatewayv1.HeaderMatchExact)), h.Value
	})
	if f != nil {
		return m, f
	}
	for i, param := range spec.QueryParams {
		name := string(param.Name)
		if slices.ContainsFunc(m.query, func(v table.ValueMatch) bool { return v.Name == name }) {
			continue
		}
		one, f := valueMatch(fmt.Sprintf("%s.queryParams[%d].type", field, i), name, string(value(param.Type, gatewayv1.QueryParamMatchExact)), param.Value)
		if f != nil {
			return m, f
		}
		m.query = append(m.query, one)
	}
	return m, nil
}

// checkPrefix refuses a prefix that is replaced where no prefix was matched.
func (r *rule) checkPrefix() {
	replaces := r.rewrite != nil && r.rewrite.PathPrefix != "" || r.redirect != nil && r.redirect.PathPrefix != ""
	for i := range r.backends {
		rewrite := r.backends[i].rewrite
		replaces = replaces || rewrite != nil && rewrite.PathPrefix != ""
	}
	if !replaces {
		return
	}
	for i, m := range r.matches {
		if m.pathType != table.PathPrefix {
			r.refuse(unsupportedf("%s.matches[%d].path.type: replacePrefixMatch needs PathPrefix", r.field, i))
		}
	}
}
