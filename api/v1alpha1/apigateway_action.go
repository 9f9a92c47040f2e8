package v1alpha1

// ServiceName is the name of a Service in the same namespace.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z](-*[a-z0-9])*$')",message="the name of a Service must start with a letter and hold only lower case letters, digits and '-'"
type ServiceName string

// BackendService is a port of a Service. The gateway balances over its endpoints. It
// speaks HTTP/1.1 to them, and HTTP/2 where the appProtocol of the port (kubernetes.io/h2c,
// or grpc) or spec.backendPolicies says so.
type BackendService struct {
	// name of a Service in the same namespace.
	// +required
	Name ServiceName `json:"name"`
	// port of the Service, from 1 to 65535.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
}

// WeightedBackend is a Service that gets a share of the requests. While it has no
// endpoint that is ready, the others get its share.
type WeightedBackend struct {
	// name of a Service in the same namespace.
	// +required
	Name ServiceName `json:"name"`
	// port of the Service, from 1 to 65535.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
	// weight is the share of the requests, in proportion to the sum of all weights, from 0
	// to 1000000. Default 1; 0 gets none.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// requestHeaders changes the headers of the requests that this Service gets, after requestHeaders of the route.
	// +optional
	RequestHeaders *BackendHeaderEdit `json:"requestHeaders,omitempty"`
	// responseHeaders changes the headers of the responses of this Service, before responseHeaders of the route.
	// +optional
	ResponseHeaders *BackendHeaderEdit `json:"responseHeaders,omitempty"`
}

// BackendHeaderEdit is a HeaderEdit for one of several Services, with at most 4 headers in each list. What cannot be changed is
// the same; a route that tries to is refused by the operator's webhook, or not served.
type BackendHeaderEdit struct {
	// set gives headers a value, in place of what they had; at most 4, values of at most 1024 characters. Default: none.
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=name
	// +optional
	Set []BackendHeaderField `json:"set,omitempty"`
	// add gives headers one more value; at most 4, values of at most 1024 characters. Default: none.
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=name
	// +optional
	Add []BackendHeaderField `json:"add,omitempty"`
	// remove takes headers away; at most 4. Default: none.
	// +kubebuilder:validation:MaxItems=4
	// +listType=set
	// +optional
	Remove []ListedHeaderName `json:"remove,omitempty"`
}

// BackendHeaderField is a header with its value.
type BackendHeaderField struct {
	// name of the header, at most 64 characters; upper and lower case are the same.
	// +required
	Name ListedHeaderName `json:"name"`
	// value of the header, at most 1024 characters.
	// +required
	Value HeaderValue `json:"value"`
}

// URLPath is the path of an address.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="self.matches('^/([!$&-;=@\\\\w~]|%[\\\\da-fA-F]{2})*$')",message="a path must start with '/' and hold only letters, digits, -._~!$&'()*+,;=:@/ and escapes such as %20"
type URLPath string

// Rewrite changes path and host of the request to the backend.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.pathPrefix) && has(self.path))",message="rewrite: set at most one of pathPrefix and path"
// +kubebuilder:validation:XValidation:rule="has(self.pathPrefix) || has(self.path) || has(self.host)",message="rewrite: set at least one of pathPrefix, path and host"
type Rewrite struct {
	// pathPrefix takes the place of the route's path at the start of the request's path,
	// at most 512 characters: with path /users and pathPrefix /, /users/1 becomes /1. It
	// needs pathType Prefix.
	// +optional
	PathPrefix URLPath `json:"pathPrefix,omitempty"`
	// path takes the place of the whole path, at most 512 characters.
	// +optional
	Path URLPath `json:"path,omitempty"`
	// host takes the place of the Host header.
	// +optional
	Host PreciseHostName `json:"host,omitempty"`
}

// PreciseHostName is a host name without wildcard.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+((-+|[.])[a-z0-9]+)*$')",message="host must be a lower case DNS name without a port"
type PreciseHostName string

// HeaderValue is the value of an HTTP header, without control characters. It is a
// pattern that says so: with 1000 routes a rule that did would cost more than the
// API server allows. What happens, the line break at the end of a block of YAML, is told by a rule too.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="!self.endsWith('\\n')",message="the value of a header must not hold line breaks and other control characters: a block of YAML after | ends with one, after |- with none"
// +kubebuilder:validation:Pattern=`^[^\x00-\x08\x0a-\x1f\x7f]*$`
type HeaderValue string

// HeaderEdit changes headers: first what remove names goes, then set, then add. Host
// and the headers that HTTP itself needs, such as Content-Length, Connection and
// Transfer-Encoding, cannot be changed.
type HeaderEdit struct {
	// set gives headers a value, in place of what they had; at most 16, values of at most
	// 1024 characters. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Set []HeaderField `json:"set,omitempty"`
	// add gives headers one more value; at most 16, values of at most 1024 characters.
	// Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Add []HeaderField `json:"add,omitempty"`
	// remove takes headers away; at most 16. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	Remove []EditableHeaderName `json:"remove,omitempty"`
}

// EditableHeaderName is the name of an HTTP header that may be changed.
//
// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'upgrade', 'expect', 'http2-settings'])",message="Host, and headers that HTTP itself needs, cannot be changed"
type EditableHeaderName HeaderName

// HeaderField is a header with its value.
type HeaderField struct {
	// name of the header, at most 64 characters; upper and lower case are the same.
	// +required
	Name EditableHeaderName `json:"name"`
	// value of the header, at most 1024 characters.
	// +required
	Value HeaderValue `json:"value"`
}

// Redirect answers with another address. What is not set stays as in the request.
//
// +kubebuilder:validation:XValidation:rule="has(self.scheme) || has(self.host) || has(self.port) || has(self.path) || has(self.pathPrefix)",message="redirect: set at least one of scheme, host, port, path and pathPrefix"
type Redirect struct {
	// scheme is http or https. Default: the request's.
	// +kubebuilder:validation:Enum=http;https
	// +optional
	Scheme string `json:"scheme,omitempty"`
	// host is a host name. Default: the request's.
	// +optional
	Host PreciseHostName `json:"host,omitempty"`
	// port from 1 to 65535. Default: the scheme's own port where scheme is set, otherwise
	// the request's.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port *int32 `json:"port,omitempty"`
	// path in place of the whole path, at most 512 characters; the query stays. Default: the request's.
	// +optional
	Path URLPath `json:"path,omitempty"`
	// pathPrefix takes the place of the route's path at the start of the request's path, at most 512 characters: with path
	// /users and pathPrefix /people, /users/1 becomes /people/1. It needs pathType Prefix, and goes without path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/([!$&-;=@\\\\w~]|%[\\\\da-fA-F]{2})*$')",message="redirect.pathPrefix must start with '/' and hold only letters, digits, -._~!$&'()*+,;=:@/ and escapes such as %20"
	// +optional
	PathPrefix string `json:"pathPrefix,omitempty"`
	// statusCode is 301, 302, 303, 307 or 308. Default 302.
	// +kubebuilder:default=302
	// +kubebuilder:validation:Enum=301;302;303;307;308
	// +optional
	StatusCode *int32 `json:"statusCode,omitempty"`
}

// DirectResponse answers with a fixed status and body.
type DirectResponse struct {
	// statusCode from 200 to 599.
	// +kubebuilder:validation:Minimum=200
	// +kubebuilder:validation:Maximum=599
	// +required
	StatusCode int32 `json:"statusCode"`
	// body of the answer, at most 4096 characters. Default: none.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Body string `json:"body,omitempty"`
	// contentType of the body, at most 1024 characters. Default text/plain; charset=utf-8.
	// +optional
	ContentType HeaderValue `json:"contentType,omitempty"`
}

// Mirror sends a copy of requests to another Service.
type Mirror struct {
	// backendService is the Service that gets the copies.
	// +required
	BackendService BackendService `json:"backendService"`
	// percent is the share of the requests that is copied, from 0 to 100. Default 100.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Percent *int32 `json:"percent,omitempty"`
	// fraction is a share that percent cannot say. percent does not count then. Default: none.
	// +optional
	Fraction *Fraction `json:"fraction,omitempty"`
}

// Fraction is a share of requests, from 0 to 1.
type Fraction struct {
	// numerator from 0 to 1000000. It must not be greater than denominator.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Numerator int32 `json:"numerator"`
	// denominator from 1 to 1000000. Default 100.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Denominator *int32 `json:"denominator,omitempty"`
}

// Origin is where a page comes from: * for all, or scheme and lower case host. It is a
// pattern that says so, as with HeaderValue, and a rule tells what happens.
//
// +kubebuilder:validation:MaxLength=270
// +kubebuilder:validation:XValidation:rule="self == '*' || (self.startsWith('https://') || self.startsWith('http://')) && !self.endsWith('/')",message="an origin must be * or like https://shop.example.com: a scheme and a lower case host, without a path"
// +kubebuilder:validation:Pattern=`^([*]|https?://([*][.])?[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?)$`
type Origin string

// CORS lets pages of other origins use the route.
//
// +kubebuilder:validation:XValidation:rule="!has(self.allowCredentials) || !self.allowCredentials || !self.allowOrigins.exists(o, o == '*')",message="cors: allowCredentials needs origins by name in allowOrigins, not '*'"
type CORS struct {
	// allowOrigins are the origins of the pages, at most 32, for example
	// https://shop.example.com, https://*.example.com or, for all, *.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +required
	AllowOrigins []Origin `json:"allowOrigins"`
	// allowMethods are the methods that a page may use, at most 16. Default: the route's
	// methods where it names some, otherwise GET, HEAD and POST.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	AllowMethods []HTTPMethod `json:"allowMethods,omitempty"`
	// allowHeaders are the request headers that a page may set, at most 16. Default: only
	// those that browsers allow by default.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	AllowHeaders []HeaderName `json:"allowHeaders,omitempty"`
	// exposeHeaders are the response headers that a page may read, at most 16. Default:
	// only those that browsers allow by default.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	ExposeHeaders []HeaderName `json:"exposeHeaders,omitempty"`
	// allowCredentials lets a page send cookies and authorization. Default false.
	// +optional
	AllowCredentials bool `json:"allowCredentials,omitempty"`
	// maxAgeSeconds is how long a browser may remember the answer, from 0 to 86400
	// seconds. Default 5.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`
}
