// Package revision is the agreement between the operator and the gateway's pods: what
// a gateway says about the configuration that it serves, and how one waits for it to
// change.
package revision

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Protocol is the version of the agreement between operator and gateway.
const Protocol = 1

// Path is where the document is served on the admin port, with GET. With ?wait=N the
// answer is held back until Revision is not N, at most for 30 s.
const Path = "/revision"

// Document is what a gateway says about what it serves: GET /revision on the admin port.
type Document struct {
	// Protocol is the version of this agreement.
	Protocol int `json:"protocol"`
	// Version is the version of the program.
	Version string `json:"version"`
	// Revision changes with everything below. It is opaque; the first one of a process is
	// the time of its start in microseconds, so that no process repeats another's.
	Revision int64 `json:"revision"`
	// UID is the one of the APIGateway that is served.
	UID types.UID `json:"uid,omitempty"`
	// Generation is the one of the spec that is served; 0 before the first table. It is
	// stated only once every new request is served by it.
	Generation int64 `json:"generation"`
	// Rejected says why a newer generation is not served. The last good one is.
	Rejected *Rejected `json:"rejected,omitempty"`
	// Problems are the routes, certificates and health checks that are not as written.
	Problems []Problem `json:"problems,omitempty"`
}

// Rejected is a generation that cannot be served at all.
type Rejected struct {
	// Generation is the one that is not served.
	Generation int64 `json:"generation"`
	// Reason is one of the reasons of package v1alpha1.
	Reason string `json:"reason"`
	// Message names the field.
	Message string `json:"message"`
}

// Problem is a route, a certificate or a health check that is not as written.
type Problem struct {
	// Route is the index in spec.routes; -1: it is not about one route.
	Route int `json:"route"`
	// Name is the name of the route, or of the Secret, or service:port of the health check.
	Name string `json:"name"`
	// Field is the path in the spec of what Message speaks of, such as spec.tls[0].secretRef.
	Field string `json:"field,omitempty"`
	// Reason is one of the reasons of package v1alpha1.
	Reason string `json:"reason"`
	// Message says what is wrong. It never holds a Secret's value.
	Message string `json:"message"`
}

// Same reports whether two documents say the same of what is served, whoever says it.
func (d Document) Same(other Document) bool {
	if (d.Rejected == nil) != (other.Rejected == nil) || (d.Rejected != nil && *d.Rejected != *other.Rejected) {
		return false
	}
	return d.UID == other.UID && d.Generation == other.Generation && slices.Equal(d.Problems, other.Problems)
}
