package gatewayapi

import (
	"fmt"
	"net/textproto"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// matchesOf reads the matches of a rule. Without any it is for every request.
func matchesOf[T any](r *rule, spec []T, read func(field string, spec *T) (match, *fault)) []match {
	if len(spec) == 0 {
		return []match{{pathType: table.PathPrefix, path: "/"}}
	}
	matches := make([]match, 0, len(spec))
	for i := range spec {
		m, f := read(fmt.Sprintf("%s.matches[%d]", r.field, i), &spec[i])
		r.refuse(f)
		m.unknown = f != nil
		matches = append(matches, m)
	}
	return matches
}

// headersOf reads conditions on headers. Of several for one name only the first counts.
func headersOf[T any](field string, spec []T, read func(T) (name, kind, text string)) ([]table.ValueMatch, *fault) {
	var headers []table.ValueMatch
	for i := range spec {
		name, kind, text := read(spec[i])
		name = textproto.CanonicalMIMEHeaderKey(name)
		if slices.ContainsFunc(headers, func(v table.ValueMatch) bool { return v.Name == name }) {
			continue
		}
		one, f := valueMatch(fmt.Sprintf("%s.headers[%d].type", field, i), name, kind, text)
		if f != nil {
			return headers, f
		}
		headers = append(headers, one)
	}
	return headers, nil
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
