package v1alpha1

// StreamProtocol is what clients of a stream speak.
//
// +kubebuilder:validation:Enum=TCP;TLS
type StreamProtocol string

const (
	// StreamTCP is anything over TCP.
	StreamTCP StreamProtocol = "TCP"
	// StreamTLS is anything that begins with TLS.
	StreamTLS StreamProtocol = "TLS"
)

// StreamTLSMode says what happens to the TLS of clients.
//
// +kubebuilder:validation:Enum=Passthrough;Terminate
type StreamTLSMode string

const (
	// StreamPassthrough gives the bytes of clients to backends as they are.
	StreamPassthrough StreamTLSMode = "Passthrough"
	// StreamTerminate ends the TLS of clients.
	StreamTerminate StreamTLSMode = "Terminate"
)

// Stream forwards connections whose bytes are not read as HTTP, such as those to a database. Its port is opened and closed while the
// gateway runs. A stream that is in error takes no other one down. The port of one that
// cannot be served as it is written is not opened.
type Stream struct {
	// name of the stream and of its port in the Service, unique, and not http or https. At most 15 characters: lower case letters, digits
	// and '-', with a letter first.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9]|-[a-z0-9])*$')",message="the name of a stream must start with a letter and hold only lower case letters, digits and single '-' between them"
	// +required
	Name string `json:"name"`
	// port of the Service and of the pods, from 1 to 65535, and none of 80, 443, 8080, 8081, 8443 and 15022. Streams of protocol TLS with
	// different hostnames may share one. The first one below 1024 restarts the pods, which need a setting of the kernel for it, and so does the removal of the last.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
	// protocol of clients: TCP, or TLS, where the name in their first message chooses the stream.
	// +required
	Protocol StreamProtocol `json:"protocol"`
	// hostnames that clients ask for with TLS (SNI), with or without a wildcard, at most 16; with protocol TLS only. A connection for
	// another name is closed. Default: any, and clients that ask for none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	Hostnames []StreamHostname `json:"hostnames,omitempty"`
	// tlsMode says what happens to the TLS of clients, with protocol TLS only. Passthrough: backends get it as it is. Terminate: it ends
	// here, and backends get what is in it, with TLS of their own if backendPolicies ask for it. Default Passthrough.
	// +optional
	TLSMode StreamTLSMode `json:"tlsMode,omitempty"`
	// certificateRefs name Secrets of type kubernetes.io/tls, at most 4: what clients are shown with tlsMode Terminate, which needs one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=name
	// +optional
	CertificateRefs []CertificateReference `json:"certificateRefs,omitempty"`
	// backends are the Services that share the connections by weight, from 1 to 16.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +listMapKey=port
	// +required
	Backends []StreamBackend `json:"backends"`
	// clientAddresses lets only those in whose address fits. The address is that of the connection: nobody is believed about another one.
	// Default: everybody.
	// +optional
	ClientAddresses *ClientAddresses `json:"clientAddresses,omitempty"`
}

// StreamHostname is a DNS name in lower case, or one after "*.".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]+((-+|[.])[a-z0-9]+)*$')",message="a hostname must be a lower case DNS name, or one after '*.'"
type StreamHostname string

// StreamBackend is a Service that gets a share of the connections. While it has no endpoint that is ready, the others get its share.
type StreamBackend struct {
	// name of a Service in the same namespace, at most 63 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z](-*[a-z0-9])*$')",message="the name of a Service must start with a letter and hold only lower case letters, digits and '-'"
	// +required
	Name string `json:"name"`
	// port of the Service, from 1 to 65535.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
	// weight is the share of the connections, in proportion to the sum of all weights, from 0 to 1000000. Default 1; 0 gets none.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}
