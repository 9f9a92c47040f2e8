package apigateway

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/health"
)

// check is what the spec alone tells about its routes.
type check struct {
	generation int64
	// names of the routes, as the gateway calls them in its logs and metrics.
	names []string
	// problems by the index of the route. Only what no other object can change.
	problems map[int]health.Trouble
	// streams are the problems of streams, in the order of the spec. Each message names its stream.
	streams []health.Trouble
	// digests of the routes, by which pods say what they serve; nil until somebody asks, which
	// is seldom.
	digests []string
}

// checkRoutes compiles the routes as the gateway does. What that says about Services
// and Secrets, which are not looked at, is left out.
func checkRoutes(gateway *slipwayv1alpha1.APIGateway) *check {
	compiled, problems := apigateway.Compile(
		apigateway.Input{Routes: gateway.Spec.Routes, BelievesEverybody: apigateway.BelievesEverybody(&gateway.Spec), CheckOnly: true},
	)
	c := &check{generation: gateway.Generation, names: make([]string, len(gateway.Spec.Routes)), problems: map[int]health.Trouble{}}
	for _, route := range compiled.Routes {
		c.names[route.Index] = route.Name
	}
	for _, p := range problems {
		c.names[p.Index] = p.Route
		if _, reported := c.problems[p.Index]; !reported && ofSpec(p.Reason) {
			c.problems[p.Index] = health.Trouble{Reason: p.Reason, Message: p.Message}
		}
	}
	for i := range gateway.Spec.Routes {
		if _, reported := c.problems[i]; reported {
			continue
		}
		if p := notExposable(gateway, string(gateway.Spec.Routes[i].Host)); p != nil {
			c.problems[i] = *p
		}
	}
	for i, f := range apigateway.StreamFaults(gateway.Spec.Streams) {
		if f != nil {
			c.streams = append(c.streams,
				health.Trouble{Reason: f.Reason, Message: fmt.Sprintf("stream %q: %s", gateway.Spec.Streams[i].Name, f.Message)})
		}
	}
	return c
}

// notExposable is why what exposes the gateway does not take a host, or nil.
func notExposable(gateway *slipwayv1alpha1.APIGateway, host string) *health.Trouble {
	exposed := desired.ExposeType(gateway)
	switch exposed {
	case slipwayv1alpha1.ExposeIngress, slipwayv1alpha1.ExposeHTTPRoute:
		if desired.IsAddress(host) {
			return &health.Trouble{
				Reason: slipwayv1alpha1.ReasonHostNotExposed,
				Message: fmt.Sprintf(
					"host: %q is an address, and spec.expose.type %s takes names only: name a host or choose another type", host, exposed,
				),
			}
		}
	case slipwayv1alpha1.ExposeNodePort, slipwayv1alpha1.ExposeLoadBalancer, slipwayv1alpha1.ExposeClusterIP:
	}
	return nil
}

// digests returns those of the routes of the spec; empty for a route that has none, which no
// pod can have read.
func (s *scope) digests() []string {
	if s.check.digests == nil {
		made := make([]string, len(s.gateway.Spec.Routes))
		for i := range made {
			made[i], _ = document.Digest(&s.gateway.Spec.Routes[i])
		}
		s.check.digests = made
	}
	return s.check.digests
}

// ofSpec tells the reasons that are about the spec alone: condition Accepted.
func ofSpec(reason string) bool {
	switch reason {
	case slipwayv1alpha1.ReasonInvalidRegex, slipwayv1alpha1.ReasonInvalidRoute,
		slipwayv1alpha1.ReasonDuplicateName,
		slipwayv1alpha1.ReasonHostConflict, slipwayv1alpha1.ReasonTooManyHosts, slipwayv1alpha1.ReasonHostNotExposed,
		slipwayv1alpha1.ReasonInvalidStream, slipwayv1alpha1.ReasonPortConflict:
		return true
	default:
		return false
	}
}

// check returns what the spec tells. It is remembered: 1,000 routes take milliseconds to
// compile, and most reconciles are about something else.
func (r *Reconciler) check(gateway *slipwayv1alpha1.APIGateway) *check {
	if known, ok := r.checks.Get(gateway.UID); ok && known.(*check).generation == gateway.Generation {
		return known.(*check)
	}
	made := checkRoutes(gateway)
	r.checks.Add(gateway.UID, made)
	return made
}
