package apigateway

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// exposeRefusal is why no HTTPRoute may be made for the Gateway that a spec names, or nil. The role edit of a cluster has no
// rights to HTTPRoutes, so who may write APIGateways gets them only for Gateways that the operator was told to make them for.
func (r *Reconciler) exposeRefusal(gateway *slipwayv1alpha1.APIGateway) *outcome.Error {
	parent := parentKey(gateway)
	if parent.Name == "" || permits(r.httpRouteGateways, parent) {
		return nil
	}
	return outcome.Invalidf(slipwayv1alpha1.ReasonExposeNotPermitted,
		"spec.expose.gateway: the operator may not make HTTPRoutes for Gateway %q; its option --httproute-gateways, value "+
			"gateway.httpRouteGateways of the chart, permits it",
		parent)
}

// permits reports whether patterns permit a Gateway: namespace/name, namespace/* or *.
func permits(patterns []string, gateway types.NamespacedName) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return pattern == "*" || pattern == gateway.Namespace+"/*" || pattern == gateway.String()
	})
}
