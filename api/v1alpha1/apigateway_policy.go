package v1alpha1

// AddressRange is an IP address, or a range of them in CIDR form such as 10.0.0.0/8. An IPv4 address that is written as an IPv6
// one (::ffff:10.0.0.1) is refused.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="!self.matches('[^.-:a-fA-F]')",message="an address must be like 10.0.0.7 or fd00::7, a range like 10.0.0.0/8"
type AddressRange string

// ClientAddresses says from which addresses requests are let in. The address is that of the connection; behind
// trustedProxies (of the APIGateway, or of the GatewayParameters) it is the last one in X-Forwarded-For that is no trusted proxy. A request whose client a trusted proxy
// does not say is refused. An APIGateway with expose.type Ingress or HTTPRoute must have trustedProxies for it: by default it believes
// everything in the cluster, and a header that anybody may send must open no list.
//
// +kubebuilder:validation:MinProperties=1
type ClientAddresses struct {
	// allow are the addresses that are let in, at most 64. Default: all that deny does not name.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Allow []AddressRange `json:"allow,omitempty"`
	// deny are addresses that are not let in, whatever allow says; at most 64. Default: none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Deny []AddressRange `json:"deny,omitempty"`
}

// Duration is a length of time, such as 500ms, 10s or 1m30s, at most 24h.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) <= duration('24h')",message="a duration must be written like 500ms, 10s or 1m30s, with the units ms, s, m and h, and be at most 24h"
type Duration string

// Timeouts say how long a request may take. Upgraded connections, such as WebSocket,
// are bounded by neither once they are upgraded.
//
// +kubebuilder:validation:XValidation:rule="!has(self.request) || !has(self.backend) || !self.request.matches('^([0-9]{1,5}(ms|s|m|h))+$') || !self.backend.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self.request) == duration('0s') || duration(self.backend) <= duration(self.request)",message="timeouts: backend must not exceed request"
type Timeouts struct {
	// request is the time from the arrival of a request to the end of its response,
	// retries included, up to 24h, for example 30s. Exceeded before the response has begun
	// it is answered with 504. Default 0s: no bound.
	// +optional
	Request Duration `json:"request,omitempty"`
	// backend is the time from sending a request to the head of the response, for each
	// try, up to 24h, for example 5s; 0s is no bound. The body may take longer. Exceeded
	// it is answered with 504. Default: where request is stated, there is no bound but that one,
	// and 60s otherwise.
	// +optional
	Backend Duration `json:"backend,omitempty"`
	// idle is the longest pause while a body is received: the request's body from the
	// client, or the response's body from the backend. Up to 24h; 0s is no bound. A longer
	// pause ends the request, with 408 if the response has not begun. It does not hold for
	// a response of type text/event-stream or application/grpc, nor for a backend whose
	// protocol is gRPC. Default: 60s for the client, 5m for the backend.
	// +optional
	Idle Duration `json:"idle,omitempty"`
}

// RetryCause is why a request is sent again.
//
// +kubebuilder:validation:Enum=ConnectFailure;Reset;Timeout;"502";"503";"504"
type RetryCause string

const (
	// RetryConnectFailure is that no connection could be made: nothing was sent.
	RetryConnectFailure RetryCause = "ConnectFailure"
	// RetryReset is that the connection ended before a response began.
	RetryReset RetryCause = "Reset"
	// RetryTimeout is that timeouts.backend was exceeded.
	RetryTimeout RetryCause = "Timeout"
	// Retry502 is a response with status 502.
	Retry502 RetryCause = "502"
	// Retry503 is a response with status 503.
	Retry503 RetryCause = "503"
	// Retry504 is a response with status 504.
	Retry504 RetryCause = "504"
)

// Retries say when a request is sent again. After ConnectFailure nothing was sent, so any
// request is sent again. After other causes only a request that may safely be repeated is sent
// again: its method is GET, HEAD, OPTIONS, TRACE, PUT or DELETE, and its body has not been
// consumed.
type Retries struct {
	// attempts is how often a request is sent again at most, from 0 to 10. Default 2.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Attempts *int32 `json:"attempts,omitempty"`
	// retryOn are the causes: ConnectFailure, Reset, Timeout, and the statuses "502", "503"
	// and "504", in quotes. Default: ConnectFailure.
	// +kubebuilder:validation:MaxItems=6
	// +listType=set
	// +optional
	RetryOn []RetryCause `json:"retryOn,omitempty"`
	// statusCodes are more status codes of a response for which a request is sent again, from 400 to 599, at most 16. Default:
	// none.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=400
	// +kubebuilder:validation:items:Maximum=599
	// +listType=set
	// +optional
	StatusCodes []int32 `json:"statusCodes,omitempty"`
}

// BackendHealthCheck checks with a GET request whether every endpoint of a backend is healthy:
// over HTTP/1.1, or over HTTP/2 where that is what the backend speaks. A status from 200 to
// 399 is a success; redirects are not followed. Every replica of the gateway checks for
// itself. An endpoint counts as healthy until its checks say otherwise.
type BackendHealthCheck struct {
	// name of the Service, in the same namespace.
	// +required
	Name ServiceName `json:"name"`
	// port of the Service, from 1 to 65535.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
	// path that is asked for, at most 512 characters. Default /.
	// +kubebuilder:default="/"
	// +optional
	Path URLPath `json:"path,omitempty"`
	// host is the Host header of a check. Default: address and port of the endpoint.
	// +optional
	Host PreciseHostName `json:"host,omitempty"`
	// periodSeconds is the time between two checks of an endpoint, from 1 to 3600 seconds;
	// each time it is up to a tenth shorter or longer. Default 10.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	PeriodSeconds *int32 `json:"periodSeconds,omitempty"`
	// timeoutSeconds is how long one check may take, from 1 to 300 seconds. A check that
	// takes longer has failed. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// healthyThreshold is how many successful checks in a row bring an endpoint back that
	// was found unhealthy, from 1 to 100. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	HealthyThreshold *int32 `json:"healthyThreshold,omitempty"`
	// unhealthyThreshold is how many failed checks in a row make an endpoint unhealthy,
	// from 1 to 100. Default 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	UnhealthyThreshold *int32 `json:"unhealthyThreshold,omitempty"`
}

// Auth lets only those in who prove who they are.
//
// +kubebuilder:validation:XValidation:rule="[has(self.apiKey), has(self.basic), has(self.jwt), has(self.external), has(self.oidc)].filter(x, x).size() == 1",message="auth: set exactly one of apiKey, basic, jwt, external and oidc"
type Auth struct {
	// apiKey asks for a key.
	// +optional
	APIKey *APIKeyAuth `json:"apiKey,omitempty"`
	// basic asks for a user name and a password.
	// +optional
	Basic *BasicAuth `json:"basic,omitempty"`
	// jwt asks for a signed token.
	// +optional
	JWT *JWTAuth `json:"jwt,omitempty"`
	// external asks a Service.
	// +optional
	External *ExternalAuth `json:"external,omitempty"`
	// oidc lets browsers log in at an OpenID Connect provider.
	// +optional
	OIDC *OIDCAuth `json:"oidc,omitempty"`
}

// ListedHeaderName is the name of an HTTP header in a list. It is a pattern that says so, as with HeaderValue, and a rule tells
// what happens.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[-A-Za-z0-9!#$%&*+.^_|~]+$`
// +kubebuilder:validation:XValidation:rule="!self.endsWith(':') && !self.endsWith(' ') && !self.startsWith(' ')",message="a header name must hold only letters, digits and -!#$%&*+.^_|~"
type ListedHeaderName string

// APIKeyAuth asks for a key. The Secret holds no key, only its hash: a client's name is a
// key of the Secret, and its value is one line per valid key, at most two so that one can
// be replaced by the other: sha256: and the SHA-256 of the API key in hexadecimal.
type APIKeyAuth struct {
	// secretRef names the Secret with the clients and the hashes of their keys.
	// +required
	SecretRef LocalReference `json:"secretRef"`
	// header is where a request has the key. The backend does not get to see it. Default
	// X-API-Key, unless queryParam is set.
	// +optional
	Header HeaderName `json:"header,omitempty"`
	// queryParam is another place where a request may have the key, at most 128
	// characters. Addresses end up in logs: prefer a header. Default: none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	QueryParam string `json:"queryParam,omitempty"`
	// clientHeader is the header in which the backend gets the client's name. Default:
	// none.
	// +optional
	ClientHeader HeaderName `json:"clientHeader,omitempty"`
}

// BasicAuth asks for a user name and a password. The Secret holds no password, only its
// hash: a user's name is a key of the Secret, and its value is one line per valid
// password, at most two. A line is the bcrypt hash of the password, of a cost from 4 to 15: what
// htpasswd -nB writes after the colon.
type BasicAuth struct {
	// secretRef names the Secret with the users and the hashes of their passwords.
	// +required
	SecretRef LocalReference `json:"secretRef"`
	// realm is the text that a browser shows when it asks for the password, at most 128
	// characters. Default: the name of the APIGateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-A-Za-z0-9 ._:/@]*$')",message="realm must hold only letters, digits, blanks and -._:/@"
	// +optional
	Realm string `json:"realm,omitempty"`
	// userHeader is the header in which the backend gets the user's name. Default: none.
	// +optional
	UserHeader HeaderName `json:"userHeader,omitempty"`
}

// JWTAuth asks for a signed token in the header Authorization, after the word Bearer.
//
// +kubebuilder:validation:XValidation:rule="has(self.jwksURL) != has(self.jwksSecretRef)",message="jwt: set exactly one of jwksURL and jwksSecretRef"
type JWTAuth struct {
	// issuer that the token must name (claim iss), at most 512 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Issuer string `json:"issuer"`
	// audiences of which the token must name one (claim aud), at most 16. Default: any.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	// +optional
	Audiences []string `json:"audiences,omitempty"`
	// jwksURL is where the issuer publishes its public keys: an https address, or an http
	// one where the network between is trusted, of at most 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['https', 'http'] && url(self).getHost() != ''",message="jwt.jwksURL must be an http or https address"
	// +optional
	JWKSURL string `json:"jwksURL,omitempty"`
	// jwksSecretRef is a key of a Secret that holds the issuer's public keys, as a JSON
	// Web Key Set.
	// +optional
	JWKSSecretRef *SecretKeyReference `json:"jwksSecretRef,omitempty"`
	// claimsToHeaders gives claims of the token to the backend as headers, at most 16.
	// What a client sends under these names is removed. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=header
	// +optional
	ClaimsToHeaders []ClaimToHeader `json:"claimsToHeaders,omitempty"`
	// requireClaims are claims that the token must have, at most 16. All of them must hold; a request whose token lacks one is
	// answered with 403. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	RequireClaims []RequiredClaim `json:"requireClaims,omitempty"`
}

// RequiredClaim is a claim that a token must have: it is one of the values, or a list that has one of them.
type RequiredClaim struct {
	// claim of the token, at most 128 characters; a dot leads into an object. Upper and lower case differ.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Claim string `json:"claim"`
	// values of which the claim must have one, from 1 to 16, each of at most 256 characters. A string counts as it is, true and
	// false as these words, and a whole number by its digits. Of the claims scope and scp each word between blanks counts.
	// Other numbers, null, objects and lists within lists never count.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	// +required
	Values []string `json:"values"`
}

// SecretKeyReference is a key of a Secret in the same namespace.
type SecretKeyReference struct {
	LocalReference `json:",inline"`
	// key in the Secret, at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
}

// ClaimToHeader gives a claim of a token to the backend.
type ClaimToHeader struct {
	// claim of the token, at most 128 characters; a dot leads into an object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Claim string `json:"claim"`
	// header that holds the claim.
	// +required
	Header HeaderName `json:"header"`
}

// RateLimitScope says what is counted together.
//
// +kubebuilder:validation:Enum=ClientAddress;Key;Route
type RateLimitScope string

const (
	// RateLimitPerClientAddress counts each client address by itself.
	RateLimitPerClientAddress RateLimitScope = "ClientAddress"
	// RateLimitPerKey counts each client, user or token subject by itself.
	RateLimitPerKey RateLimitScope = "Key"
	// RateLimitPerRoute counts all requests of the route together.
	RateLimitPerRoute RateLimitScope = "Route"
)

// RateLimitCount says who counts the requests of a rate limit.
//
// +kubebuilder:validation:Enum=Replica;Gateway
type RateLimitCount string

const (
	// RateLimitCountedByReplica has each replica count for itself.
	RateLimitCountedByReplica RateLimitCount = "Replica"
	// RateLimitCountedByGateway has all replicas count together.
	RateLimitCountedByGateway RateLimitCount = "Gateway"
)

// RateLimit bounds the number of requests.
type RateLimit struct {
	// requests is how many requests a period allows, from 1 to 1000000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Requests int32 `json:"requests"`
	// period is the length of time to which the number in requests applies, from 1s to 24h. Default 1s.
	// +kubebuilder:default="1s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1s')",message="rateLimit.period must be at least 1s"
	// +optional
	Period Duration `json:"period,omitempty"`
	// burst is how many requests may come at once after a pause, from 1 to 1000000.
	// Default: requests.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Burst *int32 `json:"burst,omitempty"`
	// per says what is counted together: ClientAddress, Key (the client, user or token
	// subject that auth found), or Route. Default ClientAddress.
	// +kubebuilder:default=ClientAddress
	// +optional
	Per RateLimitScope `json:"per,omitempty"`
	// count says who counts: each Replica for itself, or all replicas of the Gateway together. With Gateway, at most 5 %
	// more than the limit, or one request more if the limit is below 20, is allowed with 3 replicas that reach each other on port
	// 15022, and a request waits at most 20ms for another replica. A replica that does not reach the others allows its part of
	// the limit. Default Replica.
	// +optional
	Count RateLimitCount `json:"count,omitempty"`
}
