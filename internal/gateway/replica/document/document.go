// Package document is the protocol between the operator and the gateway's pods: how a
// gateway reports the configuration that it serves, and how the operator waits for a
// change.
//
//	document.go  Document: what a gateway says about its configuration
//	board.go     Board: publishes the current document, and answers when it changes
//	read.go      reading a document strictly and within bounds
//	problems.go  problems of the table in a document
//	standby.go   the operator's instruction to a gateway that does not hear the API server
package document

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Protocol is the version of this protocol.
const Protocol = 1

// Path is the path of the document on the admin port, for GET, and for POST with an
// instruction. With ?wait=N the answer is held back until Revision is not N, at most for
// 30 s.
const Path = "/revision"

// StandbyParameter is the parameter of a POST request for Path with which the operator gives
// an instruction. A gateway of an older release takes the instruction with GET, and answers
// 405 to POST. true: other replicas are current, so accept no new connections while stale.
// false: no other replica is. The instruction holds while the answer is held back, and for
// WordHolds longer. It has no effect on a gateway that is not stale, and it is dropped when
// the gateway is no longer stale.
const StandbyParameter = "standby"

// InstructionHeader is the header field without which no request is an instruction. Browsers and gateways send forms to an address
// that somebody names, and no form has such a field. A gateway of an older release does not look for it. An older operator does not
// send it: a newer gateway gives it the document, and serves on while it is stale.
const InstructionHeader = "Slipway-Instruction"

// Instruct makes a request an instruction.
func Instruct(r *http.Request) { r.Header.Set(InstructionHeader, "1") }

// WordHolds is how long an instruction holds after the last answer to the operator. It is
// longer than another operator needs to take over.
const WordHolds = 20 * time.Second

// Document is what a gateway reports about its configuration with GET /revision on the
// admin port.
type Document struct {
	// Protocol is the version of the protocol.
	Protocol int `json:"protocol"`
	// Version is the version of the program.
	Version string `json:"version"`
	// Revision changes with every change below. It is opaque. The first value of a process
	// is its start time in microseconds, so that no process repeats values of another one.
	Revision int64 `json:"revision"`
	// UID is the UID of the APIGateway that is served.
	UID types.UID `json:"uid,omitempty"`
	// Generation is the generation of the spec that is served, or 0 before the first table.
	// It is set only when all new requests use this generation.
	Generation int64 `json:"generation"`
	// Rejected says why a newer generation is not served. Then the last good one is served.
	Rejected *Rejected `json:"rejected,omitempty"`
	// Problems are the routes, certificates and health checks that do not work as the spec
	// says.
	Problems []Problem `json:"problems,omitempty"`
	// Routes are the digests of the routes of Generation, in any order. With them the
	// operator knows which routes of another generation are served too. It is missing from
	// gateways of older releases.
	Routes []string `json:"routes,omitempty"`
	// Listeners are the listeners of a Gateway of the Gateway API that are served, in any order. A
	// port that cannot be opened has none. For such a Gateway, UID and Generation are its own, and
	// Routes are RouteDigests and PolicyDigests.
	Listeners []ServedListener `json:"listeners,omitempty"`
	// View tells whether the gateway receives the changes of the cluster. It is missing
	// from gateways of older releases, and from gateways that run from a file.
	View *View `json:"view,omitempty"`
}

// View tells whether the gateway's caches are current.
type View struct {
	// Current means that the API server answers, so the configuration is not stale.
	Current bool `json:"current"`
	// Since is the time since which the API server has not answered, in milliseconds, by
	// the clock of the gateway's node. It does not change while the view is stale. It is
	// empty when Current.
	Since time.Time `json:"since,omitzero"`
	// Of are the kinds of which nothing is received, such as APIGateway, EndpointSlices or
	// Secrets. It is empty when Current.
	Of []string `json:"of,omitempty"`
}

// Same reports whether two views are equal, or both nil.
func (v *View) Same(other *View) bool {
	if v == nil || other == nil {
		return v == other
	}
	return v.Current == other.Current && v.Since.Equal(other.Since) && slices.Equal(v.Of, other.Of)
}

// Current reports whether the gateway receives every change.
func (d Document) Current() bool { return d.View != nil && d.View.Current }

// Stale reports whether the gateway reports that it does not.
func (d Document) Stale() bool { return d.View != nil && !d.View.Current }

// Digest identifies a route with its whole spec. Programs that know the same fields compute
// the same digest.
func Digest(route *slipwayv1alpha1.Route) (string, error) {
	text, err := json.Marshal(route)
	if err != nil {
		return "", fmt.Errorf("write the route: %w", err)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:9]), nil
}

// RouteDigest identifies one generation of a route of the Gateway API.
func RouteDigest(uid types.UID, generation int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", uid, generation))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// PolicyDigest identifies one generation of a GatewayPolicy with its Secrets, each as
// namespace/name@resourceVersion. Their order does not matter. It stands among the digests of routes.
func PolicyDigest(uid types.UID, generation int64, secrets []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "policy/%s/%d/%q", uid, generation, slices.Sorted(slices.Values(secrets))))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// ServedListener is a listener of a Gateway of the Gateway API that is served.
type ServedListener struct {
	// Name is its name in the spec.
	Name string `json:"name"`
	// Digest is its ListenerDigest.
	Digest string `json:"digest"`
}

// ListenerDigest identifies a listener with all that makes it what clients see: its port, whether they
// speak TLS, its hostname, and the other parts, such as the certificates, each as
// namespace/name@resourceVersion of its Secret. Their order does not matter.
func ListenerDigest(port int32, secure bool, hostname string, parts []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%t/%s/%q", port, secure, hostname, slices.Sorted(slices.Values(parts))))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// Rejected is a generation that cannot be served at all.
type Rejected struct {
	// Generation is the rejected generation.
	Generation int64 `json:"generation"`
	// Reason is one of the reasons of package v1alpha1.
	Reason string `json:"reason"`
	// Message names the field.
	Message string `json:"message"`
}

// Problem is a route, a certificate or a health check that does not work as the spec says.
type Problem struct {
	// Route is the index in spec.routes. It is -1 if the problem is not about one route.
	Route int `json:"route"`
	// Name is the name of the route or of the Secret. For a health check it is
	// service:port.
	Name string `json:"name"`
	// Field is the path of the field that Message is about, such as spec.tls[0].secretRef.
	Field string `json:"field,omitempty"`
	// Reason is one of the reasons of package v1alpha1.
	Reason string `json:"reason"`
	// Message says what is wrong. It never contains the value of a Secret.
	Message string `json:"message"`
}

// Decisive tells which of the problems conditions are made from: the first of each route, and the first with each reason of
// everything else. The others may be left out where there are too many. Without these, a route would count as live.
func Decisive(problems []Problem) []bool {
	type subject struct {
		route  int
		reason string
	}
	seen, list := map[subject]bool{}, make([]bool, len(problems))
	for i, p := range problems {
		of := subject{route: p.Route}
		if p.Route < 0 {
			of.reason = p.Reason
		}
		list[i] = !seen[of]
		seen[of] = true
	}
	return list
}

// Same reports whether two documents are equal, apart from version and revision.
func (d Document) Same(other Document) bool {
	if (d.Rejected == nil) != (other.Rejected == nil) || (d.Rejected != nil && *d.Rejected != *other.Rejected) {
		return false
	}
	return d.UID == other.UID && d.Generation == other.Generation && d.View.Same(other.View) &&
		slices.Equal(d.Problems, other.Problems) && slices.Equal(d.Routes, other.Routes) && slices.Equal(d.Listeners, other.Listeners)
}
