package v1alpha1

// PathType says how path is compared with the path of a request.
//
// +kubebuilder:validation:Enum=Prefix;Exact;RegularExpression
type PathType string

const (
	// PathPrefix compares whole path segments from the start: /users matches /users,
	// /users/ and /users/1, and not /usersx. A slash at the end of path has no meaning.
	PathPrefix PathType = "Prefix"
	// PathExact compares the whole path, with a slash at the end if there is one.
	PathExact PathType = "Exact"
	// PathRegularExpression compares the whole path with an expression in Go's (RE2)
	// syntax, in which a line end is a character like any other.
	PathRegularExpression PathType = "RegularExpression"
)

// The rules of Route are few and look at few fields: with 1000 routes they are most of
// what a write costs the API server, where a look at one field of a type costs more the
// more fields the type has.

// Route says which requests it matches and what happens to them.
//
// +kubebuilder:validation:XValidation:rule="[has(self.backendService), has(self.backends), has(self.redirect), has(self.directResponse)].filter(x, x).size() == 1",message="spec.routes: set exactly one of backendService, backends, redirect and directResponse"
// +kubebuilder:validation:XValidation:rule="self.pathType == 'RegularExpression' || self.path.matches('^(/[.]*(([-!$&-,:;=@\\\\w~]|%(0[1-9a-fA-F]|2[0-9a-dA-D]|[13-9a-fA-F][0-9a-fA-F]))[.]*)+)*/?$')",message="spec.routes: path must start with '/' and hold only letters, digits, -._~!$&'()*+,;=:@/ and escapes such as %20 (not %2F, %2E and %00), and no segment that is empty, '.' or '..'"
// +kubebuilder:validation:XValidation:rule="!has(self.rewrite) || !has(self.rewrite.pathPrefix) || self.pathType == 'Prefix'",message="spec.routes: rewrite.pathPrefix needs pathType Prefix"
// +kubebuilder:validation:XValidation:rule="has(self.backendService) || has(self.backends) || !(has(self.rewrite) || has(self.mirror) || has(self.mirrors) || has(self.retries))",message="spec.routes: rewrite, mirror, mirrors and retries need backendService or backends"
// +kubebuilder:validation:XValidation:rule="!has(self.rateLimit) || self.rateLimit.per != 'Key' || has(self.auth)",message="spec.routes: rateLimit.per Key needs auth"
type Route struct {
	// name identifies the route in status, logs and metrics. It must be unique. At most 63
	// characters. Default: its host and path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="spec.routes: name must hold only lower case letters, digits, '-' and '.'"
	// +optional
	Name string `json:"name,omitempty"`

	// host is the host name of the request, without its port, or a wildcard for every name
	// below one: *.example.com matches a.example.com and a.b.example.com, and not
	// example.com. At most 253 characters. Default: any host.
	// +optional
	Host HostName `json:"host,omitempty"`

	// path is compared with the path of the request, as pathType says; at most 512
	// characters. A request's path is compared with escapes decoded (except %2F), empty
	// segments left out, and '.' and '..' resolved. A request is answered with 400 if some
	// servers would read its path in another way, so that it could reach a route that asks
	// for more, such as a key. Default /, which with pathType Prefix is every path.
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Path string `json:"path,omitempty"`

	// pathType says how path is compared: Prefix by whole segments from the start, Exact,
	// or RegularExpression, which must match the whole path. Default Prefix.
	// +kubebuilder:default=Prefix
	// +optional
	PathType PathType `json:"pathType,omitempty"`

	// methods of the request, at most 16, for example [GET, HEAD]. Default: any.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	Methods []HTTPMethod `json:"methods,omitempty"`

	// headers that the request must have, all of them, at most 16. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Headers []HeaderMatch `json:"headers,omitempty"`

	// queryParams that the request must have, all of them, at most 16. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	QueryParams []QueryParamMatch `json:"queryParams,omitempty"`

	// backendService is the Service that answers. Set exactly one of backendService,
	// backends, redirect and directResponse.
	// +optional
	BackendService *BackendService `json:"backendService,omitempty"`

	// backends are Services that share the requests by weight, at most 16.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.exists(b, b.weight > 0)",message="spec.routes: backends: at least one weight must be greater than 0"
	// +listType=map
	// +listMapKey=name
	// +listMapKey=port
	// +optional
	Backends []WeightedBackend `json:"backends,omitempty"`

	// redirect answers with another address.
	// +optional
	Redirect *Redirect `json:"redirect,omitempty"`

	// directResponse answers with a fixed status and body.
	// +optional
	DirectResponse *DirectResponse `json:"directResponse,omitempty"`

	// rewrite changes path and host of the request to the backend. Default: as received.
	// +optional
	Rewrite *Rewrite `json:"rewrite,omitempty"`

	// requestHeaders changes the headers of the request to the backend.
	// +optional
	RequestHeaders *HeaderEdit `json:"requestHeaders,omitempty"`

	// responseHeaders changes the headers of the response to the client.
	// +optional
	ResponseHeaders *HeaderEdit `json:"responseHeaders,omitempty"`

	// mirror sends a copy of requests to another Service and ignores its answers.
	// +optional
	Mirror *Mirror `json:"mirror,omitempty"`

	// mirrors are more Services that get a copy, each with a share of its own, at most 4.
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	Mirrors []Mirror `json:"mirrors,omitempty"`

	// cors lets pages of other origins use the route. Preflight requests are answered by
	// the gateway. Default: the gateway leaves CORS to the backend.
	// +optional
	CORS *CORS `json:"cors,omitempty"`

	// maxBodyBytes is the size of the largest request body, in bytes, from 1 to 2^50. A
	// larger one is answered with 413. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1125899906842624
	// +optional
	MaxBodyBytes *int64 `json:"maxBodyBytes,omitempty"`

	// cache keeps responses of the backends that they declare fresh, and gives them to requests that would have got the same. It
	// needs backendService or backends. Its defaults are set by {}. Default: nothing is kept.
	// +optional
	Cache *Cache `json:"cache,omitempty"`

	// compression compresses responses of the backends for clients that accept it. It needs backendService or backends. Its
	// defaults are set by {}. Default: off.
	// +optional
	Compression *Compression `json:"compression,omitempty"`

	// maintenance answers requests with 503 in place of the route, at set times or until it is taken away. {} means now. Default:
	// never.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty"`

	// timeouts say how long a request may take.
	// +optional
	Timeouts *Timeouts `json:"timeouts,omitempty"`

	// retries say when a request is sent again. Default: up to 2 times after a connection
	// failed before anything was sent.
	// +optional
	Retries *Retries `json:"retries,omitempty"`

	// sessionAffinity sends the requests of a client to the same endpoint. It needs backendService or backends. Default: each
	// request goes to an endpoint by load.
	// +optional
	SessionAffinity *SessionAffinity `json:"sessionAffinity,omitempty"`

	// clientAddresses lets only those in whose address fits. Others get 403. Default: everybody.
	// +optional
	ClientAddresses *ClientAddresses `json:"clientAddresses,omitempty"`

	// auth lets only those in who prove who they are. Others get 401, or with auth.external what the Service answers. Default: everybody.
	// +optional
	Auth *Auth `json:"auth,omitempty"`

	// rateLimit bounds the number of requests. Others get 429. Default: no bound.
	// +optional
	RateLimit *RateLimit `json:"rateLimit,omitempty"`
}

// HTTPMethod is the method of a request, in upper case.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]+(-[A-Z]+)*$') && self != 'CONNECT'",message="methods must be upper case letters such as GET, and not CONNECT"
type HTTPMethod string

// MatchType says how a value is compared.
//
// +kubebuilder:validation:Enum=Exact;RegularExpression
type MatchType string

const (
	// MatchExact compares the whole value.
	MatchExact MatchType = "Exact"
	// MatchRegularExpression compares the whole value with an expression in Go's (RE2)
	// syntax, in which a line end is a character like any other.
	MatchRegularExpression MatchType = "RegularExpression"
)

// HeaderName is the name of an HTTP header.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="!self.matches('[^!#-&*+.^|~\\\\w-]')",message="a header name must hold only letters, digits and -!#$%&*+.^_|~"
type HeaderName string

// HeaderMatch is a header that the request must have.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) || self.type == 'Exact'",message="headers: type RegularExpression needs a value"
type HeaderMatch struct {
	// name of the header, at most 64 characters; upper and lower case are the same.
	// +required
	Name HeaderName `json:"name"`
	// value that the header must have, or one of its values where it stands several times;
	// at most 1024 characters. Default: any, but the header must be there.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value *string `json:"value,omitempty"`
	// type says how value is compared: Exact, or RegularExpression, which must match the
	// whole value. Default Exact.
	// +kubebuilder:default=Exact
	// +optional
	Type MatchType `json:"type,omitempty"`
}

// QueryParamMatch is a query parameter that the request must have.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) || self.type == 'Exact'",message="queryParams: type RegularExpression needs a value"
type QueryParamMatch struct {
	// name of the parameter, at most 256 characters; upper and lower case differ.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Name string `json:"name"`
	// value that the parameter must have, the first where it stands several times; at most
	// 1024 characters. Default: any, but the parameter must be there.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value *string `json:"value,omitempty"`
	// type says how value is compared: Exact, or RegularExpression, which must match the
	// whole value. Default Exact.
	// +kubebuilder:default=Exact
	// +optional
	Type MatchType `json:"type,omitempty"`
}
