package v1alpha1

// Condition types that only APIGateway has.
const (
	// ConditionAccepted is True when every route of the spec can be served as written.
	ConditionAccepted = "Accepted"
	// ConditionResolvedRefs is True when every Service, port and Secret that the spec names
	// exists and can be used.
	ConditionResolvedRefs = "ResolvedRefs"
	// ConditionProgrammed is True when every replica serves this generation of the spec.
	ConditionProgrammed = "Programmed"
)

// Reasons of an APIGateway's conditions and of routes that are not live. ReasonSecretNotFound,
// ReasonConfigMapNotFound and ReasonKeyNotFound are among them.
const (
	// ReasonAccepted: every route can be served as written.
	ReasonAccepted = "Accepted"
	// ReasonResolvedRefs: everything that the spec names exists.
	ReasonResolvedRefs = "ResolvedRefs"
	// ReasonProgrammed: every replica serves this generation.
	ReasonProgrammed = "Programmed"
	// ReasonRoutesNotLive: some routes are not live; status.routes.notLive says which and why.
	ReasonRoutesNotLive = "RoutesNotLive"

	// ReasonBackendNotFound: a route names a Service that does not exist.
	ReasonBackendNotFound = "BackendNotFound"
	// ReasonPortNotFound: a route names a port that the Service does not have.
	ReasonPortNotFound = "PortNotFound"
	// ReasonNoEndpoints: no pod behind a Service of the route is ready.
	ReasonNoEndpoints = "NoEndpoints"
	// ReasonUnsupportedProtocol: the Service's port speaks a protocol that the gateway does not.
	ReasonUnsupportedProtocol = "UnsupportedProtocol"
	// ReasonUnsupportedService: the Service is of type ExternalName, which the gateway does not follow.
	ReasonUnsupportedService = "UnsupportedService"
	// ReasonInvalidRegex: a regular expression of the route does not compile, or is too large.
	ReasonInvalidRegex = "InvalidRegex"
	// ReasonInvalidRoute: fields of the route are missing, malformed or contradict each other.
	ReasonInvalidRoute = "InvalidRoute"
	// ReasonInvalidStream: fields of a stream are missing, malformed or contradict each other.
	ReasonInvalidStream = "InvalidStream"
	// ReasonPortConflict: a stream has a port that something else has.
	ReasonPortConflict = "PortConflict"
	// ReasonPortUnavailable: a pod cannot open the port of a stream.
	ReasonPortUnavailable = "PortUnavailable"
	// ReasonDuplicateName: an earlier route has the same name.
	ReasonDuplicateName = "DuplicateName"
	// ReasonHostConflict: another APIGateway had the same host at the same place first.
	ReasonHostConflict = "HostConflict"
	// ReasonTooManyHosts: the APIGateways of the namespace have as many hosts as they may have.
	ReasonTooManyHosts = "TooManyHosts"
	// ReasonInvalidSecret: a Secret does not hold what the route needs, in the form that it needs.
	ReasonInvalidSecret = "InvalidSecret"
	// ReasonInvalidCertificate: a TLS Secret does not hold a certificate with its key.
	ReasonInvalidCertificate = "InvalidCertificate"
	// ReasonInvalidCACertificates: a ConfigMap or Secret does not hold the certificates of authorities.
	ReasonInvalidCACertificates = "InvalidCACertificates"
	// ReasonCertificateExpired: a certificate is no longer valid, or not yet.
	ReasonCertificateExpired = "CertificateExpired"
	// ReasonCertificateMismatch: a certificate does not cover a host that it is served for.
	ReasonCertificateMismatch = "CertificateMismatch"
	// ReasonKeysNotFetched: no public keys could be fetched from auth.jwt.jwksURL yet.
	ReasonKeysNotFetched = "KeysNotFetched"
	// ReasonLimitNotShared: the replicas do not reach each other, so each allows its part of a rate limit with count: Gateway.
	ReasonLimitNotShared = "LimitNotShared"
	// ReasonAffinityNotShared: the replicas have no key in common, so each chooses the endpoints of sessions by itself.
	ReasonAffinityNotShared = "AffinityNotShared"
	// ReasonProviderNotFetched: what the provider of auth.oidc.issuer publishes could not be fetched yet.
	ReasonProviderNotFetched = "ProviderNotFetched"
	// ReasonReplicaBehind: a replica serves an older generation, or does not answer.
	ReasonReplicaBehind = "ReplicaBehind"
	// ReasonReplicaStale: a replica does not hear the API server any more, so it may serve old
	// routes, endpoints and Secrets.
	ReasonReplicaStale = "ReplicaStale"
	// ReasonTooMuchToTell: the pods of the gateways of the namespace tell more than the operator keeps of one namespace.
	ReasonTooMuchToTell = "TooMuchToTell"
	// ReasonHostNotExposed: what exposes the gateway does not take the host of a route.
	ReasonHostNotExposed = "HostNotExposed"
	// ReasonExposeNotPermitted: the operator was not told to make HTTPRoutes for the Gateway of spec.expose.
	ReasonExposeNotPermitted = "ExposeNotPermitted"
	// ReasonKindNotFound: the cluster does not have a kind that spec.expose needs. Of a MonitorRule: the monitor watches no kind that
	// spec.kinds names.
	ReasonKindNotFound = "KindNotFound"
	// ReasonParentNotFound: the Gateway that spec.expose.gateway names does not exist.
	ReasonParentNotFound = "ParentNotFound"
	// ReasonParentNotWatched: the Gateway that spec.expose.gateway names has not taken the HTTPRoute, and the operator may not look whether it exists.
	ReasonParentNotWatched = "ParentNotWatched"
	// ReasonParentRefused: the Gateway that spec.expose.gateway names does not take the HTTPRoute.
	ReasonParentRefused = "ParentRefused"
	// ReasonImageIncompatible: what spec.image runs is no gateway, or one that does not understand this API.
	ReasonImageIncompatible = "ImageIncompatible"
)
