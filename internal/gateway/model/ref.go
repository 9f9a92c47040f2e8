package model

// BackendRef names a port of a Service.
type BackendRef struct {
	// Namespace is the namespace of the Service. Empty: the gateway's own.
	Namespace string
	Service   string
	Port      int32
	// Weight is the share of the requests.
	Weight uint32
	// Field names the field in problems, such as backends.
	Field string
	// Fault means that the backend must not be used. Then its name is not looked at.
	Fault *Fault

	// These change the requests that the backend gets, and their responses, after what the
	// rule changes. What Rewrite sets replaces what the rule's Rewrite sets.
	Rewrite         *Rewrite
	RequestHeaders  *HeaderEdit
	ResponseHeaders *HeaderEdit
	// Mirrors get copies besides those of the rule.
	Mirrors []MirrorRef
}

// MirrorRef names a backend that gets copies of requests.
type MirrorRef struct {
	// Namespace, Service, Port, Field and Fault are those of a BackendRef.
	Namespace string
	Service   string
	Port      int32
	Field     string
	Fault     *Fault

	// Numerator of Denominator requests are copied.
	Numerator   uint32
	Denominator uint32
}

// ID returns the name of the backend, as BackendName has it for HTTP.
func (r *BackendRef) ID() string {
	return BackendName{ServiceName: ServiceName{Namespace: r.Namespace, Name: r.Service}, Port: r.Port}.String()
}
