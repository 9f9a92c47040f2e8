package conformance

import (
	"slices"

	"sigs.k8s.io/gateway-api/pkg/features"
)

// core is what the profiles GATEWAY-HTTP and GATEWAY-GRPC ask of everybody.
var core = []features.FeatureName{
	features.SupportGateway,
	features.SupportReferenceGrant,
	features.SupportHTTPRoute,
	features.SupportGRPCRoute,
}

// supported are the extended features that Slipway claims. A claim is true when every test of the feature passes.
var supported = []features.FeatureName{
	// Which requests a rule takes.
	features.SupportHTTPRouteQueryParamMatching,
	features.SupportHTTPRouteMethodMatching,

	// What becomes of a request and its response.
	features.SupportHTTPRouteResponseHeaderModification,
	features.SupportHTTPRouteHostRewrite,
	features.SupportHTTPRoutePathRewrite,
	features.SupportHTTPRouteRequestMirror,

	// Redirects that keep the port and the path.
	features.SupportHTTPRouteSchemeRedirect,
	features.SupportHTTPRoute303RedirectStatusCode,
	features.SupportHTTPRoute307RedirectStatusCode,
	features.SupportHTTPRoute308RedirectStatusCode,

	// How long an answer may take.
	features.SupportHTTPRouteRequestTimeout,
	features.SupportHTTPRouteBackendTimeout,

	// What a backend speaks, by the appProtocol of its Service's port.
	features.SupportHTTPRouteBackendProtocolH2C,
	features.SupportHTTPRouteBackendProtocolWebSocket,

	// What concerns only the status, or lets a name be set.
	features.SupportHTTPRouteDestinationPortMatching,
	features.SupportHTTPRouteNamedRouteRule,
	features.SupportGRPCRouteNamedRouteRule,

	// Listeners of one port do not serve each other's routes.
	features.SupportGatewayHTTPListenerIsolation,

	// Redirects to another port, and of a part of the path.
	features.SupportHTTPRoutePortRedirect,
	features.SupportHTTPRoutePathRedirect,

	// More than one mirror, shares of requests, and changes for one backend of several.
	features.SupportHTTPRouteRequestMultipleMirrors,
	features.SupportHTTPRouteRequestPercentageMirror,
	features.SupportHTTPRouteBackendRequestHeaderModification,

	// Cross-origin requests as the Gateway API wants them answered.
	features.SupportHTTPRouteCORS,

	// Trying again. Of these only the first has a test.
	features.SupportHTTPRouteRetry,
	features.SupportHTTPRouteRetryBackendTimeout,
	features.SupportHTTPRouteRetryConnectionError,

	// Listeners at other ports than 80 and 443, and what the Service in front of the gateway is.
	features.SupportGatewayPort8080,
	features.SupportHTTPRouteParentRefPort,
	features.SupportGatewayInfrastructure,
	features.SupportGatewayAddressEmpty,
	features.SupportGatewayStaticAddresses,

	// Connections that are used for another listener's host.
	features.SupportGatewayHTTPSListenerDetectMisdirectedRequests,

	// TLS to backends.
	features.SupportBackendTLSPolicy,
	features.SupportBackendTLSPolicySANValidation,
	features.SupportGatewayBackendClientCertificate,

	// Certificates of clients.
	features.SupportGatewayFrontendClientCertificateValidation,
	features.SupportGatewayFrontendClientCertificateValidationInsecureFallback,

	// Listeners in objects of their own.
	features.SupportListenerSet,

	// TLS that is passed through or ended without being read as HTTP, on one port with each other.
	features.SupportTLSRoute,
	features.SupportTLSRouteModeTerminate,
	features.SupportTLSRouteModeMixed,

	// Connections and datagrams.
	features.SupportTCPRoute,
	features.SupportUDPRoute,
}

// refusable are the extended features that core tests expect to be refused where they are not claimed.
var refusable = []features.FeatureName{features.SupportTLSRouteModeTerminate, features.SupportTLSRouteModeMixed}

// missing are the extended features that Slipway does not claim yet.
var missing []features.FeatureName

// claimed lists the features to test with the CRDs of a channel. Those that are experimental have no fields in the standard
// CRDs, but for the refusable ones, which need none.
func claimed(channel string, extended bool) []features.FeatureName {
	list := slices.Clone(core)
	if !extended {
		return append(list, refusable...)
	}
	for _, name := range supported {
		experimental := features.GetFeature(name).Channel != features.FeatureChannelStandard
		if channel == features.FeatureChannelStandard && experimental && !slices.Contains(refusable, name) {
			continue
		}
		list = append(list, name)
	}
	return list
}
