package apigateway

import slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"

// privateRanges are the usual addresses of proxies in a cluster, and of everything else in it.
var privateRanges = []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}

// BehindProxy reports whether a proxy of the cluster stands in front of the gateway.
func BehindProxy(expose *slipwayv1alpha1.Expose) bool {
	if expose == nil {
		return true
	}
	switch expose.Type {
	case "", slipwayv1alpha1.ExposeIngress, slipwayv1alpha1.ExposeHTTPRoute:
		return true
	default:
		return false
	}
}

// BelievesEverybody reports whether nobody has said which proxies stand in front of the gateway, so that it believes everything in the
// cluster. What the addresses of clients are then is good for logs, and for shares of what is there, and keeps nobody out.
func BelievesEverybody(spec *slipwayv1alpha1.APIGatewaySpec) bool {
	return spec.TrustedProxies == nil && BehindProxy(spec.Expose)
}

// TrustedProxies are the address ranges whose X-Forwarded-For is believed.
func TrustedProxies(spec *slipwayv1alpha1.APIGatewaySpec) []string {
	if BelievesEverybody(spec) {
		return privateRanges
	}
	return spec.TrustedProxies
}
