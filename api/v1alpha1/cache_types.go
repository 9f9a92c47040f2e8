package v1alpha1

// Cache keeps responses of backends in the memory of each replica, as RFC 9111 has it, and gives them to requests that would have
// got the same. Only what a backend declares fresh by Cache-Control or Expires is kept. A replica keeps 64 MiB at most, and a
// quarter of its memory limit at most, for all routes together.
type Cache struct {
	// mode says whether responses are kept: Store, or Off for a route that would inherit a cache. Default Store.
	// +kubebuilder:default=Store
	// +optional
	Mode CacheMode `json:"mode,omitempty"`

	// maxBytes is the size of the largest body that is kept, in bytes, from 1 to 8388608. Default 1048576.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8388608
	// +optional
	MaxBytes *int32 `json:"maxBytes,omitempty"`

	// maxAgeSeconds bounds how long a response is given without asking the backend again, whatever the backend says, from 1 to
	// 2592000. Default 3600.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	// +optional
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`
}

// CacheMode says whether responses are kept.
//
// +kubebuilder:validation:Enum=Store;Off
type CacheMode string

const (
	// CacheStore keeps responses.
	CacheStore CacheMode = "Store"
	// CacheOff keeps none.
	CacheOff CacheMode = "Off"
)
