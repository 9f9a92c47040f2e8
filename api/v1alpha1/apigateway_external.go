package v1alpha1

// ExternalAuth asks a Service about each request. With protocol HTTP that is a GET request without the body, or with body a POST
// request. It names the request in
// X-Forwarded-Method, X-Forwarded-Proto, X-Forwarded-Host, X-Forwarded-Uri (the path and the query, as the backend gets them
// without a rewrite) and X-Forwarded-For. A status from 200 to 299 lets the request in. Another one below 500 refuses it: the
// client gets the status, the body up to 64 KiB, and of the headers Content-Type, Location, Set-Cookie, WWW-Authenticate,
// Cache-Control and Retry-After. A request whose path may be read in more than one way is answered with 400: the Service and the
// backend could read it differently.
type ExternalAuth struct {
	// backendService is the Service that is asked.
	// +required
	BackendService BackendService `json:"backendService"`
	// protocol is how the Service is asked: HTTP, or GRPC: envoy.service.auth.v3.Authorization/Check, over HTTP/2 without TLS unless
	// a BackendTLSPolicy is for the Service. Default HTTP.
	// +optional
	Protocol ExternalAuthProtocol `json:"protocol,omitempty"`
	// path that the Service is asked at with protocol HTTP, at most 512 characters. Default /.
	// +kubebuilder:default="/"
	// +optional
	Path URLPath `json:"path,omitempty"`
	// requestHeaders are the headers of the request that the Service gets, at most 32. Default: Authorization and Cookie.
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	RequestHeaders []ListedHeaderName `json:"requestHeaders,omitempty"`
	// backendHeaders are the headers of the Service's answer that the backend gets, at most 16. What a client sends under these
	// names is removed. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	BackendHeaders []ListedHeaderName `json:"backendHeaders,omitempty"`
	// identityHeader is the header of the Service's answer that says who the client is, for rateLimit.per Key. Without it in an
	// answer, the request is refused. Default: none.
	// +optional
	IdentityHeader HeaderName `json:"identityHeader,omitempty"`
	// timeout is how long the Service may take to answer, from 1ms to 30s. Default 5s.
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1ms') && duration(self) <= duration('30s')",message="auth.external.timeout must be from 1ms to 30s"
	// +optional
	Timeout Duration `json:"timeout,omitempty"`
	// onFailure says what happens while the Service gives no answer, or one with status 500 or higher: Refuse answers with 503,
	// LetIn lets everybody in. Too many questions at a time, an answer that is too large or cannot be understood, and the end of
	// timeouts.request let nobody in. Default Refuse.
	// +kubebuilder:default=Refuse
	// +optional
	OnFailure AuthFailurePolicy `json:"onFailure,omitempty"`
	// body shows the Service the body of the request. The backend gets exactly what it was shown. Default: it is not shown.
	// +optional
	Body *ExternalAuthBody `json:"body,omitempty"`
}

// ExternalAuthBody shows the Service bodies up to a size. The request waits until its body has come.
type ExternalAuthBody struct {
	// maxBytes is the size of the largest body, from 1 to 1048576 bytes. A larger one is answered with 413.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	// +required
	MaxBytes int32 `json:"maxBytes"`
}

// ExternalAuthProtocol says how a Service is asked.
//
// +kubebuilder:validation:Enum=HTTP;GRPC
type ExternalAuthProtocol string

const (
	// ExternalAuthHTTP asks with an HTTP request.
	ExternalAuthHTTP ExternalAuthProtocol = "HTTP"
	// ExternalAuthGRPC calls envoy.service.auth.v3.Authorization/Check.
	ExternalAuthGRPC ExternalAuthProtocol = "GRPC"
)

// AuthFailurePolicy says what happens to requests that cannot be checked.
//
// +kubebuilder:validation:Enum=Refuse;LetIn
type AuthFailurePolicy string

const (
	// AuthFailureRefuse refuses them.
	AuthFailureRefuse AuthFailurePolicy = "Refuse"
	// AuthFailureLetIn lets them in.
	AuthFailureLetIn AuthFailurePolicy = "LetIn"
)
