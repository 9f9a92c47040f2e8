package gateway

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// supported are the features of the Gateway API that are served, as the status of each class tells. The conformance suite
// tests all of them.
var supported = []features.FeatureName{
	features.SupportGateway,
	features.SupportGRPCRoute,
	features.SupportHTTPRoute,
	features.SupportReferenceGrant,
	features.SupportHTTPRouteMethodMatching,
	features.SupportHTTPRouteQueryParamMatching,
	features.SupportHTTPRouteResponseHeaderModification,
	features.SupportHTTPRouteHostRewrite,
	features.SupportHTTPRoutePathRewrite,
	features.SupportHTTPRouteSchemeRedirect,
	features.SupportHTTPRoute303RedirectStatusCode,
	features.SupportHTTPRoute307RedirectStatusCode,
	features.SupportHTTPRoute308RedirectStatusCode,
	features.SupportHTTPRouteRequestMirror,
	features.SupportHTTPRouteRequestTimeout,
	features.SupportHTTPRouteBackendTimeout,
	features.SupportHTTPRouteBackendProtocolH2C,
	features.SupportHTTPRouteBackendProtocolWebSocket,
	features.SupportHTTPRouteNamedRouteRule,
	features.SupportHTTPRouteDestinationPortMatching,
	features.SupportGRPCRouteNamedRouteRule,
	features.SupportGatewayHTTPListenerIsolation,
	features.SupportHTTPRoutePortRedirect,
	features.SupportHTTPRoutePathRedirect,
	features.SupportHTTPRouteRequestMultipleMirrors,
	features.SupportHTTPRouteRequestPercentageMirror,
	features.SupportHTTPRouteBackendRequestHeaderModification,
	features.SupportHTTPRouteCORS,
	features.SupportHTTPRouteRetry,
	features.SupportHTTPRouteRetryBackendTimeout,
	features.SupportHTTPRouteRetryConnectionError,
	features.SupportGatewayPort8080,
	features.SupportHTTPRouteParentRefPort,
	features.SupportGatewayInfrastructure,
	features.SupportGatewayAddressEmpty,
	features.SupportGatewayStaticAddresses,
	features.SupportGatewayHTTPSListenerDetectMisdirectedRequests,
	features.SupportBackendTLSPolicy,
	features.SupportBackendTLSPolicySANValidation,
	features.SupportGatewayBackendClientCertificate,
	features.SupportGatewayFrontendClientCertificateValidation,
	features.SupportGatewayFrontendClientCertificateValidationInsecureFallback,
	features.SupportListenerSet,
	features.SupportTLSRoute,
	features.SupportTLSRouteModeTerminate,
	features.SupportTLSRouteModeMixed,
	features.SupportTCPRoute,
	features.SupportUDPRoute,
}

// supportedFeatures are sorted by name, as the API wants them.
func supportedFeatures() []gatewayv1.SupportedFeature {
	names := slices.Sorted(slices.Values(supported))
	list := make([]gatewayv1.SupportedFeature, len(names))
	for i, name := range names {
		list[i].Name = gatewayv1.FeatureName(name)
	}
	return list
}
