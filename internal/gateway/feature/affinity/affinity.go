// Package affinity says which requests go to the same endpoint. It is pure.
package affinity

import (
	"strings"
	"time"
)

// Policy sends the requests of a client to the same endpoint.
type Policy struct {
	By By
	// Name is that of the cookie or of the header. A cookie without one gets a name of the gateway.
	Name string
	// Lifetime is how long a cookie lasts. 0: until the browser ends.
	Lifetime time.Duration
	// NameField and LifetimeField are the fields of the spec with Name and Lifetime, for messages.
	NameField, LifetimeField string `json:"-"`
	// Scope names the first backend of the rule. Cookies of the gateway's own names are shared by routes with the same one.
	// Compile sets it.
	Scope string
}

// By says how it is known which requests belong together.
type By uint8

const (
	// ByCookie means a cookie that the gateway sets.
	ByCookie By = iota
	// ByToken means a header that the gateway sets in the response and the client repeats in its requests.
	ByToken
	// ByHeader means a header of the client. Requests with an equal one belong together.
	ByHeader
	// ByAddress means the address of the client.
	ByAddress
	// None means that no requests belong together. A rule with it has no affinity.
	None
)

// Told reports whether the client is told the endpoint, and not the other way round.
func (a *Policy) Told() bool { return a.By == ByCookie || a.By == ByToken }

const (
	maxSessionName     = 128
	maxSessionLifetime = 400 * 24 * time.Hour // browsers keep no cookie longer
)

// isFreeHeader reports whether the gateway may set a header in responses to a token: it would take the place of what
// the response says of itself.
func isFreeHeader(name string) bool {
	for _, taken := range [...]string{"Access-Control-", "Content-", "Www-", "Sec-", "Grpc-"} {
		if strings.HasPrefix(name, taken) {
			return false
		}
	}
	switch name {
	case "Accept-Ranges", "Age", "Alt-Svc", "Authorization", "Cache-Control", "Date", "Etag", "Expires", "Last-Modified", "Link",
		"Location", "Pragma",
		"Refresh", "Retry-After", "Server", "Strict-Transport-Security", "Vary", "Via", "Warning":
		return false
	}
	return true
}
