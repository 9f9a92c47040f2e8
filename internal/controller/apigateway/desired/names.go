package desired

import (
	"maps"
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
)

// Secrets are the names of the Secrets that the pods read, each once, in order.
func Secrets(gateway *slipwayv1alpha1.APIGateway) []string {
	names := apigateway.NamesOf(&gateway.Spec)
	if names.Shares || names.Sessions {
		names.Secrets[quota.SecretName(gateway.Name)] = true
	}
	return slices.Sorted(maps.Keys(names.Secrets))
}

// NeedsSecret reports whether the replicas need a secret in common: to count the requests of a route together, or to choose
// the endpoints of sessions alike.
func NeedsSecret(gateway *slipwayv1alpha1.APIGateway) bool {
	names := apigateway.NamesOf(&gateway.Spec)
	return names.Shares || names.Sessions
}

// ConfigMaps are the names of the ConfigMaps that the pods read, each once, in order.
func ConfigMaps(gateway *slipwayv1alpha1.APIGateway) []string {
	return slices.Sorted(maps.Keys(apigateway.NamesOf(&gateway.Spec).ConfigMaps))
}
