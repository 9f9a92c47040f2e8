package gatewayapi

import (
	"regexp"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// grpcRules reads the rules of a GRPCRoute.
func grpcRules(of *gatewayv1.GRPCRoute) []rule {
	rules := make([]rule, 0, len(of.Spec.Rules))
	for i := range of.Spec.Rules {
		rules = append(rules, grpcRule(i, &of.Spec.Rules[i]))
	}
	return rules
}

func grpcRule(index int, spec *gatewayv1.GRPCRouteRule) rule {
	r := newRule(index, spec.Name)
	r.matches = matchesOf(&r, spec.Matches, grpcMatch)
	r.filters(filtersOf(spec.Filters, grpcFilter))
	for i := range spec.BackendRefs {
		ref := &spec.BackendRefs[i]
		r.backend(i, ref.BackendRef, filtersOf(ref.Filters, grpcFilter))
	}
	for i := range r.backends {
		r.backends[i].grpc = true
	}
	r.refuse(r.session(spec.SessionPersistence))
	return r
}

// grpcMatch reads a match. The path of a call is /service/method. The rank orders matches by the
// characters of the service, then of the method, as GRPCRoute demands. A service or a method alone
// is an expression, because the order of paths would put a longer prefix before it.
func grpcMatch(field string, spec *gatewayv1.GRPCRouteMatch) (match, *fault) {
	m := match{pathType: table.PathPrefix, path: "/"}
	if spec.Method != nil {
		if f := m.call(field+".method", spec.Method); f != nil {
			return m, f
		}
	}
	var f *fault
	m.headers, f = headersOf(field, spec.Headers, func(h gatewayv1.GRPCHeaderMatch) (name, kind, text string) {
		return string(h.Name), string(value(h.Type, gatewayv1.GRPCHeaderMatchExact)), h.Value
	})
	return m, f
}

// maxName is how long a service or a method may be, by the schema of the Gateway API.
const maxName = 1024

// call makes the path of a match.
func (m *match) call(field string, spec *gatewayv1.GRPCMethodMatch) *fault {
	service, method := value(spec.Service, ""), value(spec.Method, "")
	m.rank = len(service)*(maxName+1) + len(method)
	quote := regexp.QuoteMeta
	switch kind := value(spec.Type, gatewayv1.GRPCMethodMatchExact); kind {
	case gatewayv1.GRPCMethodMatchExact:
		if service != "" && method != "" {
			m.pathType, m.path = table.PathExact, "/"+service+"/"+method
			return nil
		}
	case gatewayv1.GRPCMethodMatchRegularExpression:
		quote = func(expression string) string { return "(?:" + expression + ")" }
	default:
		return unsupportedf("%s.type: %q is not supported", field, kind)
	}
	if service == "" && method == "" {
		return unsupportedf("%s: it has neither a service nor a method", field)
	}
	m.pathType, m.path = table.PathRegularExpression, "/"+oneOf(service, quote)+"/"+oneOf(method, quote)
	return nil
}

// oneOf is the expression for a segment. Empty: any.
func oneOf(name string, quote func(string) string) string {
	if name == "" {
		return "[^/]+"
	}
	return quote(name)
}
