package v1alpha1

// Compression compresses responses of backends for clients that accept it. A page that holds a secret and repeats something of
// the request must not be compressed: its size tells the secret (BREACH).
type Compression struct {
	// algorithms are the content codings that may be used: Gzip and Zstd. Among those that a client accepts alike, the first one
	// is used. Identity, alone, means that nothing is compressed. Default: Zstd, then Gzip.
	// +kubebuilder:validation:MaxItems=2
	// +listType=set
	// +optional
	Algorithms []CompressionAlgorithm `json:"algorithms,omitempty"`

	// minBytes is the least Content-Length of a response that is compressed, in bytes, from 1 to 2^30. A response without
	// Content-Length is compressed whatever its size. Default 1024.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741824
	// +optional
	MinBytes *int32 `json:"minBytes,omitempty"`

	// contentTypes are the types of responses that are compressed, in lower case and without parameters, such as text/html or
	// text/*. At most 64. Streams, such as text/event-stream and application/x-ndjson, are compressed only if their type is
	// listed in full. Default: those of text, scripts, JSON, XML, SVG and fonts that are not compressed already. gRPC is never
	// compressed.
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	ContentTypes []ContentType `json:"contentTypes,omitempty"`
}

// CompressionAlgorithm is a content coding.
//
// +kubebuilder:validation:Enum=Gzip;Zstd;Identity
type CompressionAlgorithm string

// The content codings.
const (
	// CompressionGzip is gzip.
	CompressionGzip CompressionAlgorithm = "Gzip"
	// CompressionZstd is zstd (RFC 8878).
	CompressionZstd CompressionAlgorithm = "Zstd"
	// CompressionIdentity is no compression.
	CompressionIdentity CompressionAlgorithm = "Identity"
)

// ContentType is a media type in lower case, without parameters. The part after the slash may be *. It is a
// pattern that says so, as with HeaderValue, and a rule tells what happens.
//
// +kubebuilder:validation:XValidation:rule="!self.endsWith('=utf-8') && !self.endsWith('=UTF-8')",message="a content type must be like text/html or image/*: lower case, without parameters such as charset"
// +kubebuilder:validation:MaxLength=127
// +kubebuilder:validation:Pattern=`^[a-z0-9!#$&^_.+-]+/([a-z0-9!#$&^_.+-]+|\*)$`
type ContentType string
