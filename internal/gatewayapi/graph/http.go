package graph

import (
	"fmt"
	"net/textproto"
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
	r.matches = httpMatches(&r, spec.Matches)
	for i := range spec.Filters {
		r.refuse(r.add(fmt.Sprintf("%s.filters[%d]", r.field, i), httpFilter(&spec.Filters[i])))
	}
	for i := range spec.BackendRefs {
		ref := &spec.BackendRefs[i]
		filters := make([]filter, 0, len(ref.Filters))
		for k := range ref.Filters {
			filters = append(filters, httpFilter(&ref.Filters[k]))
		}
		r.backend(fmt.Sprintf("%s.backendRefs[%d]", r.field, i), ref.BackendRef, filters)
	}
	r.refuse(r.timeouts(spec.Timeouts))
	r.refuse(r.retry(spec.Retry))
	if spec.SessionPersistence != nil {
		r.refuse(unsupportedf("%s.sessionPersistence: it is not supported", r.field))
	}
	if r.redirect != nil && len(r.backends) > 0 {
		r.refuse(faultf(gatewayv1.RouteReasonIncompatibleFilters, "%s: a rule that redirects has no backendRefs", r.field))
	}
	if r.redirect != nil && r.rewrite != nil {
		r.refuse(faultf(gatewayv1.RouteReasonIncompatibleFilters, "%s: a rule cannot redirect and rewrite", r.field))
	}
	r.checkPrefix()
	return r
}

// httpMatches reads the matches of a rule. Without any it is for every request.
func httpMatches(r *rule, spec []gatewayv1.HTTPRouteMatch) []match {
	if len(spec) == 0 {
		return []match{{pathType: table.PathPrefix, path: "/"}}
	}
	matches := make([]match, 0, len(spec))
	for i := range spec {
		m, f := httpMatch(fmt.Sprintf("%s.matches[%d]", r.field, i), &spec[i])
		r.refuse(f)
		m.unknown = f != nil
		matches = append(matches, m)
	}
	return matches
}

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
	var seen []string
	for i, header := range spec.Headers {
		name := textproto.CanonicalMIMEHeaderKey(string(header.Name))
		if slices.Contains(seen, name) {
			continue // only the first one of a name counts
		}
		seen = append(seen, name)
		one, f := valueMatch(fmt.Sprintf("%s.headers[%d].type", field, i), name, string(value(header.Type, gatewayv1.HeaderMatchExact)), header.Value)
		if f != nil {
			return m, f
		}
		m.headers = append(m.headers, one)
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

// valueMatch reads a condition. The types have the same names for headers, query parameters and
// gRPC headers.
func valueMatch(field, name, kind, text string) (table.ValueMatch, *fault) {
	switch kind {
	case string(gatewayv1.HeaderMatchExact):
		return table.ValueMatch{Name: name, Type: table.MatchExact, Value: &text}, nil
	case string(gatewayv1.HeaderMatchRegularExpression):
		return table.ValueMatch{Name: name, Type: table.MatchRegularExpression, Value: &text}, nil
	default:
		return table.ValueMatch{}, unsupportedf("%s: %q is not supported", field, kind)
	}
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
