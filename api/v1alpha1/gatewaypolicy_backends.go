package v1alpha1

// BackendSettings bound the use of each port of a Service that the rules name for which the policy holds, of those that get copies
// too, and check its endpoints. These rules are counted together, by every replica for itself. Other rules are counted apart: they
// have connections of their own to the same port, and their own view of its health.
//
// +kubebuilder:validation:MinProperties=1
type BackendSettings struct {
	// maxConnections is how many connections there are to all endpoints of a port together, from 1 to 65535. Over HTTP/1.1 a
	// request has one to itself, a WebSocket too; requests above the bound wait for one. Default 4096.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	MaxConnections *int32 `json:"maxConnections,omitempty"`
	// maxPendingRequests is how many requests wait for a connection, from 0 to 65535. Default 1024.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	MaxPendingRequests *int32 `json:"maxPendingRequests,omitempty"`
	// maxRequests is how many requests are under way, those that wait and WebSockets included, from 1 to 1000000. More are
	// answered with 503. Default 8192.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaxRequests *int32 `json:"maxRequests,omitempty"`
	// healthCheck checks the endpoints with requests of the gateway. Default: none.
	// +optional
	HealthCheck *EndpointCheck `json:"healthCheck,omitempty"`
}

// EndpointCheck checks with a GET request whether every endpoint of a port is healthy: over HTTP/1.1, or over HTTP/2 where that is
// what the endpoint speaks. A status from 200 to 399 is a success; redirects are not followed. Every replica of the gateway
// checks for itself. An endpoint counts as healthy until its checks say otherwise.
type EndpointCheck struct {
	// path that is asked for, at most 512 characters. Default /.
	// +kubebuilder:default="/"
	// +optional
	Path URLPath `json:"path,omitempty"`
	// host is the Host header of a check. Default: address and port of the endpoint.
	// +optional
	Host PreciseHostName `json:"host,omitempty"`
	// periodSeconds is the time between two checks of an endpoint, from 1 to 3600 seconds; each time it is up to a tenth shorter
	// or longer. Default 10.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	PeriodSeconds *int32 `json:"periodSeconds,omitempty"`
	// timeoutSeconds is how long one check may take, from 1 to 300 seconds. A check that takes longer has failed. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// healthyThreshold is how many successful checks in a row bring an endpoint back that was found unhealthy, from 1 to 100.
	// Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	HealthyThreshold *int32 `json:"healthyThreshold,omitempty"`
	// unhealthyThreshold is how many failed checks in a row make an endpoint unhealthy, from 1 to 100. Default 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	UnhealthyThreshold *int32 `json:"unhealthyThreshold,omitempty"`
}
