// Package revision is the agreement between the operator and the gateway's pods: what
// a gateway says about the configuration that it serves, and how one waits for it to
// change.
package revision

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Protocol is the version of the agreement between operator and gateway.
const Protocol = 1

// Path is where the document is served on the admin port, with GET. With ?wait=N the
// answer is held back until Revision is not N, at most for 30 s.
const Path = "/revision"

// StandbyParameter is the parameter of a question at Path with which the operator gives its
// word: true, other replicas are current, so take no new connections while stale; false,
// they are not. The word holds for as long as the answer is held back and for WordHolds
// longer. It has no effect on a gateway that is not stale, and is forgotten when it no longer is.
const StandbyParameter = "standby"

// WordHolds is how long a word holds after the last answer to whoever gave it. It is longer
// than it takes another operator to take over.
const WordHolds = 20 * time.Second

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
	// Routes are the digests of the routes of Generation, in no order: which routes of another
	// generation are served too. A gateway of an older release does not tell.
	Routes []string `json:"routes,omitempty"`
	// View tells whether the gateway hears of every change of the cluster. A gateway of an
	// older release, or one that runs from a file, does not tell.
	View *View `json:"view,omitempty"`
}

// View is how a gateway sees the cluster.
type View struct {
	// Current: the API server is heard, so what is served is how the cluster is.
	Current bool `json:"current"`
	// Since is from when it has not been heard, by the clock of the gateway's node, in
	// milliseconds. It stays the same for as long as that lasts. Without a value when Current.
	Since time.Time `json:"since,omitzero"`
	// Of are the kinds of which nothing is heard: APIGateway, EndpointSlices, Secrets,
	// Services. Empty when Current.
	Of []string `json:"of,omitempty"`
}

// Same reports whether two say the same, or nothing.
func (v *View) Same(other *View) bool {
	if v == nil || other == nil {
		return v == other
	}
	return v.Current == other.Current && v.Since.Equal(other.Since) && slices.Equal(v.Of, other.Of)
}

// Current reports whether the gateway says that it hears of every change.
func (d Document) Current() bool { return d.View != nil && d.View.Current }

// Stale reports whether the gateway says that it does not.
func (d Document) Stale() bool { return d.View != nil && !d.View.Current }

// Digest identifies a route with all that its spec says, for every program that knows the
// same fields.
func Digest(route *slipwayv1alpha1.Route) (string, error) {
	text, err := json.Marshal(route)
	if err != nil {
		return "", fmt.Errorf("write the route: %w", err)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:9]), nil
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
	return d.UID == other.UID && d.Generation == other.Generation && d.View.Same(other.View) &&
		slices.Equal(d.Problems, other.Problems) && slices.Equal(d.Routes, other.Routes)
}
