package v1alpha1

// SessionAffinity sends the requests of a client to the same endpoint of the backend, as long as it is ready. Exactly one of
// its fields is set.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type SessionAffinity struct {
	// cookie tells the client its endpoint in a cookie, which says nothing to others. A client without one gets an endpoint by
	// load. When the endpoint is gone, unhealthy or cannot be reached, the client gets another one of the same backend and
	// another cookie.
	// +optional
	Cookie *AffinityCookie `json:"cookie,omitempty"`
	// header chooses the endpoint by a header of the request: requests with the same value get the same endpoint. When endpoints
	// come or go, only their share of the values moves. A request without the header gets an endpoint by load.
	// +optional
	Header *AffinityHeader `json:"header,omitempty"`
	// clientAddress chooses the endpoint by the address of the client, in the same way: of an IPv6 address by its /64. Behind
	// trustedProxies it is the address that they say. It has no fields.
	// +optional
	ClientAddress *AffinityClientAddress `json:"clientAddress,omitempty"`
	// none leaves the choice to the load, where a less specific GatewayPolicy asks for something else. It has no fields.
	// +optional
	None *AffinityNone `json:"none,omitempty"`
}

// AffinityHeader is a header of requests.
type AffinityHeader struct {
	// name of the header, at most 64 characters. It cannot be one with a meaning for connections or for all requests, such as
	// Host and Cookie.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="!self.matches('[^!#-&*+.^|~\\\\w-]')",message="a header name must hold only letters, digits and -!#$%&*+.^_|~"
	// +required
	Name string `json:"name"`
}

// AffinityCookie is a cookie with HttpOnly, SameSite=Lax and Path=/, and with Secure where the request came with TLS.
type AffinityCookie struct {
	// name of the cookie, at most 64 characters. Routes of a host may have the same: the cookie holds an endpoint for each of
	// up to 8 backends. Default: a name of the gateway, which is the same for routes whose first backend is the same.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="!self.matches('[^!#-&*+.^|~\\\\w-]')",message="sessionAffinity.cookie.name must hold only letters, digits and -!#$%&*+.^_|~"
	// +optional
	Name string `json:"name,omitempty"`
	// lifetimeSeconds is how long the client keeps the cookie after it got it, from 1 to 34560000 seconds (400 days). Default:
	// until the browser is closed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=34560000
	// +optional
	LifetimeSeconds *int32 `json:"lifetimeSeconds,omitempty"`
}

// AffinityClientAddress has no fields.
type AffinityClientAddress struct{}

// AffinityNone has no fields.
type AffinityNone struct{}
