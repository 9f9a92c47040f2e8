package table

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Input is all that a table is made of. Compile keeps none of it.
type Input struct {
	// Routes are the routes of the spec, in its order. Fields that the API server would
	// have defaulted may be empty.
	Routes []slipwayv1alpha1.Route
	// Unknown are the fields of routes, by index, that the API server knows and this
	// program does not. What such a route means cannot be told.
	Unknown map[int]string
	// HealthChecks are those of the spec, in its order, and UnknownChecks the fields of them,
	// by index, that this program does not know.
	HealthChecks  []slipwayv1alpha1.BackendHealthCheck
	UnknownChecks map[int]string
	// BackendPolicies are those of the spec, in its order, and UnknownPolicies the fields of
	// them, by index, that this program does not know.
	BackendPolicies []slipwayv1alpha1.BackendPolicy
	UnknownPolicies map[int]string
	// Services are the Services that routes may name, by name.
	Services map[string]Service
	// Secrets are the contents of the Secrets that routes may name, by name.
	Secrets map[string]map[string][]byte
	// Unreadable are the names of Secrets that may not be read.
	Unreadable map[string]bool
}

// WhyMissing says why there is nothing of a Secret.
func (in *Input) WhyMissing(secret string) string {
	if in.Unreadable[secret] {
		return "may not be read by the gateway"
	}
	return "does not exist"
}

// Service is what is known of a Service.
type Service struct {
	// External is set where the Service is nothing but a name somewhere else.
	External bool
	// Ports are the ports of the Service by number.
	Ports map[int32]ServicePort
}

// ServicePort is a port of a Service and the endpoints behind it.
type ServicePort struct {
	// AppProtocol is the appProtocol of the port; empty: HTTP/1.1.
	AppProtocol string
	// Endpoints are host:port of what is ready behind the port, in any order.
	Endpoints []string
}

// Problem says why a route is not served as the spec says, a health check not made or a
// policy not followed.
type Problem struct {
	// Index is the place of the route in the spec, Route its name. Of a health check or a
	// policy, Index is -1, Route the ID of its backend, and List where it is in the spec.
	Index int
	Route string
	List  string
	// Reason is one of the reasons of package v1alpha1, such as ReasonBackendNotFound.
	Reason string
	// Message names the field and the object. It never holds a Secret's value.
	Message string
}

// Table is a compiled set of routes. It is immutable: everything that can be reached
// from it is shared by all requests and is never written again.
type Table struct {
	// Routes are the routes that can match, in the order of the spec.
	Routes []*Route
	// Backends are the Services that routes send requests to, each Service and port once,
	// by ID.
	Backends []*Backend

	exact    map[string]*host
	wildcard map[string]*host // by what comes after "*."
	any      *host            // nil when no route is for any host

	queryNames map[string]bool // of the parameters that routes look at
}

// Protocol is what is spoken to the endpoints of a backend.
type Protocol uint8

const (
	// ProtocolHTTP1 is HTTP/1.1.
	ProtocolHTTP1 Protocol = iota
	// ProtocolH2C is HTTP/2 without TLS.
	ProtocolH2C
	// ProtocolGRPC is HTTP/2 without TLS, with streams that may be silent.
	ProtocolGRPC
)

// IsHTTP2 reports whether HTTP/2 is spoken.
func (p Protocol) IsHTTP2() bool { return p != ProtocolHTTP1 }

// Backend is a port of a Service.
type Backend struct {
	// ID is service:port. It stays the same from table to table.
	ID string
	// Index is the place in Table.Backends.
	Index int
	// Service and Port name the port of the Service.
	Service string
	Port    int32
	// Protocol is what is spoken to the endpoints.
	Protocol Protocol
	// Endpoints are host:port of what is ready, sorted, each once. It may be empty.
	Endpoints []string
	// HealthCheck is how the endpoints are asked whether they are well; nil: not at all.
	HealthCheck *HealthCheck
	// Limits bound what is asked of the backend at a time.
	Limits Limits
}

// Limits bound what is asked of a backend at a time.
type Limits struct {
	// Connections to all endpoints, Pending requests that wait for one, and Requests under
	// way, those that wait included.
	Connections int
	Pending     int
	Requests    int
}

// HealthCheck is how an endpoint is asked whether it is well.
type HealthCheck struct {
	// Path is asked for.
	Path string
	// Host is the Host header; empty: the endpoint.
	Host string
	// Period is the time between two checks, Timeout what one may take.
	Period  time.Duration
	Timeout time.Duration
	// Healthy and Unhealthy are how many checks in a row must succeed or fail to change
	// what is thought of an endpoint.
	Healthy   int
	Unhealthy int
}
