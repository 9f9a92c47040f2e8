package v1alpha1

// BackendProtocol is what the endpoints of a backend speak.
//
// +kubebuilder:validation:Enum=HTTP1;H2C;GRPC
type BackendProtocol string

const (
	// BackendHTTP1 is HTTP/1.1.
	BackendHTTP1 BackendProtocol = "HTTP1"
	// BackendH2C is HTTP/2: without TLS by prior knowledge, with tls as both sides agree.
	BackendH2C BackendProtocol = "H2C"
	// BackendGRPC is gRPC: HTTP/2 as above, with streams that may be silent for long.
	BackendGRPC BackendProtocol = "GRPC"
)

// BackendPolicy says what a port of a Service speaks, and how much every replica of the
// gateway asks of it at a time. What is above a bound is answered with 503 at once.
type BackendPolicy struct {
	// name of the Service, in the same namespace.
	// +required
	Name ServiceName `json:"name"`
	// port of the Service, from 1 to 65535.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
	// protocol of the endpoints: HTTP1, H2C (HTTP/2, with TLS only if tls is set) or GRPC (the same,
	// and timeouts.idle does not hold). Default: what the appProtocol of the port says, HTTP1
	// without one. What a request says of itself makes no difference.
	// +optional
	Protocol BackendProtocol `json:"protocol,omitempty"`
	// tls says that the endpoints speak TLS, and whom they have to prove to be. Default: no TLS.
	// +optional
	TLS *BackendTLS `json:"tls,omitempty"`
	// maxConnections is how many connections there are to all endpoints together, from 1 to
	// 65535. Over HTTP/1.1 a request has one to itself, a WebSocket too; requests above
	// the bound wait for one. Default 4096.
	// +kubebuilder:default=4096
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	MaxConnections *int32 `json:"maxConnections,omitempty"`
	// maxPendingRequests is how many requests wait for a connection, from 0 to 65535.
	// Default 1024.
	// +kubebuilder:default=1024
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	MaxPendingRequests *int32 `json:"maxPendingRequests,omitempty"`
	// maxRequests is how many requests are under way, those that wait and WebSockets
	// included, from 1 to 1000000. Default 8192.
	// +kubebuilder:default=8192
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaxRequests *int32 `json:"maxRequests,omitempty"`
}

// ConnectionLimits bound the connections of clients to each replica of the gateway. One
// above a bound is closed at once; those that are open stay.
type ConnectionLimits struct {
	// max is how many connections a replica has, from 1 to 1000000. Default 10000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Max *int32 `json:"max,omitempty"`
	// maxPerClient is how many of them one client address has, from 1 to 1000000; a client of
	// IPv6 is its /64. It does not hold for trustedProxies. Default: no fixed number. A
	// client may open one more connection while it has fewer than three times the number
	// of connections that are free.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaxPerClient *int32 `json:"maxPerClient,omitempty"`
	// maxRequests is how many requests of clients are under way, over all connections, those
	// that wait and WebSockets included, from 1 to 1000000. Requests above the bound are answered
	// with 503. A client address that has three times as many requests under way as are free
	// is answered with 429.
	// Default 10000, or max where that is more.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaxRequests *int32 `json:"maxRequests,omitempty"`
}
