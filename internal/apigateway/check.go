package apigateway

import (
	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// check is what the spec alone tells about its routes.
type check struct {
	generation int64
	// names of the routes, as the gateway calls them in its logs and metrics.
	names []string
	// problems by the index of the route. Only what no other object can change.
	problems map[int]trouble
}

// checkRoutes compiles the routes as the gateway does. What that says about Services
// and Secrets, which are not looked at, is left out.
func checkRoutes(gateway *slipwayv1alpha1.APIGateway) *check {
	compiled, problems := table.Compile(table.Input{Routes: gateway.Spec.Routes})
	c := &check{generation: gateway.Generation, names: make([]string, len(gateway.Spec.Routes)), problems: map[int]trouble{}}
	for _, route := range compiled.Routes {
		c.names[route.Index] = route.Name
	}
	for _, p := range problems {
		c.names[p.Index] = p.Route
		if _, told := c.problems[p.Index]; !told && ofSpec(p.Reason) {
			c.problems[p.Index] = trouble{p.Reason, p.Message}
		}
	}
	return c
}

// ofSpec tells the reasons that are about the spec alone: condition Accepted.
func ofSpec(reason string) bool {
	switch reason {
	case slipwayv1alpha1.ReasonInvalidRegex, slipwayv1alpha1.ReasonInvalidRoute,
		slipwayv1alpha1.ReasonDuplicateName, slipwayv1alpha1.ReasonHostConflict:
		return true
	default:
		return false
	}
}

// check returns what the spec tells. It is remembered: 1,000 routes take milliseconds to
// compile, and most passes are about something else.
func (r *Reconciler) check(gateway *slipwayv1alpha1.APIGateway) *check {
	if known, ok := r.checks.Get(gateway.UID); ok && known.(*check).generation == gateway.Generation {
		return known.(*check)
	}
	made := checkRoutes(gateway)
	r.checks.Add(gateway.UID, made)
	return made
}
