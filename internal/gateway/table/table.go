package table

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Input is everything that a table is made from. Compile keeps no reference to it.
type Input struct {
	// Routes are the routes of the spec, in its order. Fields with a default of the API
	// server may be empty.
	Routes []slipwayv1alpha1.Route
	// Unknown are fields of routes, by index, that the API server knows and this program
	// does not. It is unknown what such a route means.
	Unknown map[int]string
	// HealthChecks are the health checks of the spec, in its order. UnknownChecks are
	// fields of them, by index, that this program does not know.
	HealthChecks  []slipwayv1alpha1.BackendHealthCheck
	UnknownChecks map[int]string
	// BackendPolicies are the policies of the spec, in its order. UnknownPolicies are
	// fields of them, by index, that this program does not know.
	BackendPolicies []slipwayv1alpha1.BackendPolicy
	UnknownPolicies map[int]string
	// Services are the Services that routes may name, by name.
	Services map[string]Service
	// Secrets are the contents of the Secrets that routes may name, by name.
	Secrets map[string]map[string][]byte
	// Unreadable are the names of Secrets that the gateway may not read.
	Unreadable map[string]bool
}

// WhyMissing says why a Secret has no content.
func (in *Input) WhyMissing(secret string) string {
	if in.Unreadable[secret] {
		return "may not be read by the gateway"
	}
	return "does not exist"
}

// Service is the part of a Service that a table needs.
type Service struct {
	// External is set for an ExternalName Service.
	External bool
	// Ports are the ports of the Service by number.
	Ports map[int32]ServicePort
}

// ServicePort is a port of a Service and the endpoints behind it.
type ServicePort struct {
	// AppProtocol is the appProtocol of the port; empty: HTTP/1.1.
	AppProtocol string
	// Endpoints are the ready endpoints of the port, as host:port, in any order.
	Endpoints []string
}

// Problem says why a route is not served as the spec says, or why a health check or a
// policy is ignored.
type Problem struct {
	// Index is the route's index in the spec, and Route its name. For a health check or a
	// policy, Index is -1, Route is the ID of the backend, and List is the list in the
	// spec.
	Index int
	Route string
	List  string
	// Reason is one of the reasons of package v1alpha1, such as ReasonBackendNotFound.
	Reason string
	// Message names the field and the object. It never contains the value of a Secret.
	Message string
}

// Table is a compiled set of routes. It is immutable: all requests share everything in it,
// and nothing in it is written again.
type Table struct {
	// Routes are the routes that can match, in the order of the spec.
	Routes []*Route
	// Backends are the ports of Services that routes use, each of them once, sorted by ID.
	Backends []*Backend

	exact    map[string]*host
	wildcard map[string]*host // by the part after "*."
	any      *host            // nil when no route is for any host

	queryNames map[string]bool // the query parameters that routes look at
}

// Protocol is the protocol of a backend's endpoints.
type Protocol uint8

const (
	// ProtocolHTTP1 is HTTP/1.1.
	ProtocolHTTP1 Protocol = iota
	// ProtocolH2C is HTTP/2 without TLS.
	ProtocolH2C
	// ProtocolGRPC is HTTP/2 without TLS. Its streams may be silent.
	ProtocolGRPC
)

// IsHTTP2 reports whether the protocol is HTTP/2.
func (p Protocol) IsHTTP2() bool { return p != ProtocolHTTP1 }

// Backend is a port of a Service.
type Backend struct {
	// ID is service:port. It is the same in every table.
	ID string
	// Index is the index in Table.Backends.
	Index int
	// Service and Port name the port of the Service.
	Service string
	Port    int32
	// Protocol is the protocol of the endpoints.
	Protocol Protocol
	// Endpoints are the ready endpoints, as host:port, sorted and without duplicates. It
	// may be empty.
	Endpoints []string
	// HealthCheck is the active health check of the endpoints. Nil means none.
	HealthCheck *HealthCheck
	// Limits bound the concurrent use of the backend.
	Limits Limits
}

// Limits bound the concurrent use of a backend.
type Limits struct {
	// Connections bounds the connections to all endpoints. Pending bounds the requests that
	// wait for a connection. Requests bounds the requests in flight, including those that
	// wait.
	Connections int
	Pending     int
	Requests    int
}

// HealthCheck is an active health check of an endpoint.
type HealthCheck struct {
	// Path is the path of the request.
	Path string
	// Host is the Host header. Empty: the address of the endpoint.
	Host string
	// Period is the time between two checks. Timeout bounds one check.
	Period  time.Duration
	Timeout time.Duration
	// Healthy is how many checks in a row must succeed before an unhealthy endpoint counts
	// as healthy. Unhealthy is how many must fail before a healthy one counts as unhealthy.
	Healthy   int
	Unhealthy int
}
