package v1alpha1

// The limits of these types are patterns and not rules: there may be 100 policies, and what rules may cost is used up.

// BackendTLS says how the endpoints of a backend are reached with TLS 1.2 or newer, and whom they have to prove to be. While
// something that it names is missing or cannot be read, the backend is not reached: its requests are answered with 500, and
// never sent without TLS or to an endpoint that nobody has checked. It holds for requests, WebSockets, copies of requests
// (mirror), auth.external and health checks alike. An endpoint whose certificate does not fit counts as one that cannot be
// connected to.
type BackendTLS struct {
	// hostname is sent to the endpoints as the name of the server (SNI). Their certificate must be for it, unless
	// subjectAltNames are set. A DNS name in lower case, at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+((-+|[.])[a-z0-9]+)*$')",message="tls.hostname must be a lower case DNS name without a port"
	// +required
	Hostname string `json:"hostname"`
	// caCertificates are the authorities of which the certificate must come, from 1 to 8 ConfigMaps or Secrets. Every one of
	// them must be readable. Default: the authorities of the gateway's image, which are those of public sites.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	CACertificates []CACertificates `json:"caCertificates,omitempty"`
	// subjectAltNames are names of which the certificate must have at least one, in place of hostname: DNS names, where one
	// that begins with "*." must be in the certificate as it is, and URIs such as spiffe://example.com/shop, which must be
	// equal. At most 16. Default: hostname.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	SubjectAltNames []SubjectAltName `json:"subjectAltNames,omitempty"`
	// clientCertificateRef names a Secret of type kubernetes.io/tls: the certificate (tls.crt) and key (tls.key) that endpoints
	// are shown when they ask for one. Default: none is shown.
	// +optional
	ClientCertificateRef *CertificateReference `json:"clientCertificateRef,omitempty"`
}

// SubjectAltName is a DNS name in lower case, with or without a wildcard, or a URI.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]+((-+|[.])[a-z0-9]+)*$|^[a-z][-a-z0-9+.]*://[^\\\\s/]+(/\\\\S*)?$')",message="an alternative name must be a lower case DNS name, one after '*.', or a URI such as spiffe://example.com/shop"
type SubjectAltName string

// CertificateReference names a Secret of type kubernetes.io/tls in the same namespace.
type CertificateReference struct {
	// name of the Secret, at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+((-+|[.])[a-z0-9]+)*$')",message="name must be a DNS subdomain: lower case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
}

// CACertificatesKind is the kind of an object that holds certificates of authorities.
//
// +kubebuilder:validation:Enum=ConfigMap;Secret
type CACertificatesKind string

const (
	// CACertificatesConfigMap is a ConfigMap.
	CACertificatesConfigMap CACertificatesKind = "ConfigMap"
	// CACertificatesSecret is a Secret.
	CACertificatesSecret CACertificatesKind = "Secret"
)

// DefaultCACertificatesKey is where an object holds the certificates of authorities, unless something else is said.
const DefaultCACertificatesKey = "ca.crt"

// CACertificates are certificates of authorities, in PEM, in a ConfigMap or Secret of the same namespace. A change is used within
// seconds. One that cannot be read makes all of them unusable: who wrote it meant it to be trusted.
type CACertificates struct {
	// kind of the object: ConfigMap or Secret. Default ConfigMap.
	// +kubebuilder:default=ConfigMap
	// +optional
	Kind CACertificatesKind `json:"kind,omitempty"`
	// name of the object, at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+((-+|[.])[a-z0-9]+)*$')",message="name must be a DNS subdomain: lower case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
	// key in the object, at most 253 characters. Default ca.crt.
	// +kubebuilder:default=ca.crt
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="a key must hold only letters, digits, '-', '_' and '.'"
	// +optional
	Key string `json:"key,omitempty"`
}

// ClientCertificates has clients of HTTPS prove with certificates who they are. While something that it names is missing or cannot
// be read, nobody is let in.
type ClientCertificates struct {
	// caCertificates are the authorities of which certificates must come, from 1 to 8 ConfigMaps or Secrets. A certificate must
	// be valid now, and for clients.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +required
	CACertificates []CACertificates `json:"caCertificates"`
	// mode says what happens to clients without a valid certificate. Require: they get no connection, and requests without TLS get
	// 403. AllowInsecureFallback: they are let in, and nothing tells backends who they are. Default Require.
	// +optional
	Mode ClientCertificatesMode `json:"mode,omitempty"`
	// fingerprintHeader is the header of the request that has the SHA-256 of a client's valid certificate, in 64 hexadecimal digits.
	// What clients send under this name is removed. At most 64 characters. Default: none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="!self.matches('[^!#-&*+.^|~\\\\w-]')",message="clientCertificates.fingerprintHeader must hold only letters, digits and -!#$%&*+.^_|~"
	// +optional
	FingerprintHeader string `json:"fingerprintHeader,omitempty"`
	// nameHeader is the header of the request that has the alternative names of a client's valid certificate, such as
	// URI:spiffe://example.com/shop,DNS:shop.internal. What clients send under this name is removed. At most 64 characters.
	// Default: none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="!self.matches('[^!#-&*+.^|~\\\\w-]')",message="clientCertificates.nameHeader must hold only letters, digits and -!#$%&*+.^_|~"
	// +optional
	NameHeader string `json:"nameHeader,omitempty"`
}

// ClientCertificatesMode says what happens to clients without a valid certificate.
//
// +kubebuilder:validation:Enum=Require;AllowInsecureFallback
type ClientCertificatesMode string

const (
	// ClientCertificatesRequire lets nobody in without.
	ClientCertificatesRequire ClientCertificatesMode = "Require"
	// ClientCertificatesAllowInsecureFallback lets everybody in.
	ClientCertificatesAllowInsecureFallback ClientCertificatesMode = "AllowInsecureFallback"
)
