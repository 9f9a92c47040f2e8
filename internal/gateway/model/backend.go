package model

import (
	"fmt"
	"strings"
	"time"
)

// ServiceName names a Service. An empty Namespace is the gateway's own.
type ServiceName struct{ Namespace, Name string }

// nameEscapes keeps a name from looking like one with a namespace. Names of the API server
// have neither character.
var nameEscapes = strings.NewReplacer("%", "%25", "/", "%2F")

// String returns the name, after the namespace and a slash for another namespace. Different
// Services have different texts.
func (s ServiceName) String() string {
	if s.Namespace == "" {
		return nameEscapes.Replace(s.Name)
	}
	return nameEscapes.Replace(s.Namespace) + "/" + nameEscapes.Replace(s.Name)
}

// BackendName names a port of a Service.
type BackendName struct {
	ServiceName

	Port int32
	// Transport says how it is reached. What is known of a port from HTTP does not count for connections that are not read.
	Transport Transport
	// Group are the rules that share BackendSettings. Empty: those without. What is known of a port in one group does not count in
	// another.
	Group string
}

// String returns the name that is shown in logs: service:port, after the namespace and a
// slash for another namespace. What is not reached with HTTP has the transport after another slash, and a group comes after two
// slashes, which nothing before it has. Different backends have different texts.
func (b BackendName) String() string {
	text := fmt.Sprintf("%s:%d", b.ServiceName, b.Port)
	if b.Transport != TransportHTTP {
		text += "/" + strings.ToLower(string(b.Transport))
	}
	if b.Group != "" {
		text += "//" + b.Group
	}
	return text
}

// Service is the part of a Service that a table needs.
type Service struct {
	// External is set for an ExternalName Service.
	External bool
	// Ports are the ports of the Service for TCP by number, and UDP those for UDP.
	Ports map[int32]ServicePort
	UDP   map[int32]ServicePort
}

// Port returns the port of a backend.
func (s *Service) Port(name BackendName) (ServicePort, bool) {
	of := s.Ports
	if name.Transport == TransportUDP {
		of = s.UDP
	}
	port, found := of[name.Port]
	return port, found
}

// ServicePort is a port of a Service and the endpoints behind it.
type ServicePort struct {
	// Name is the name of the port; empty: it has none.
	Name string
	// AppProtocol is the appProtocol of the port; empty: HTTP/1.1.
	AppProtocol string
	// Endpoints are the ready endpoints of the port, as host:port, in any order.
	Endpoints []string
}

// Settings are the settings of a backend.
type Settings struct {
	// Protocol is the protocol of the endpoints. Nil: the appProtocol of the Service's port.
	Protocol *Protocol
	// Limits bound the concurrent use of the backend. Nil: DefaultLimits.
	Limits *Limits
	// HealthCheck is the active health check of the endpoints. Nil: none.
	HealthCheck *HealthCheck
	// TLS is how the endpoints are reached with TLS. Nil: without.
	TLS *BackendTLS
	// Fault means that the backend must not be reached, by no rule and for no copy. The other settings have no meaning then.
	Fault *Fault
}

// Protocol is the protocol of a backend's endpoints.
type Protocol uint8

const (
	// ProtocolHTTP1 is HTTP/1.1.
	ProtocolHTTP1 Protocol = iota
	// ProtocolH2C is HTTP/2. Without TLS it begins without a negotiation.
	ProtocolH2C
	// ProtocolGRPC is HTTP/2, as ProtocolH2C. Its streams may be silent.
	ProtocolGRPC
)

// IsHTTP2 reports whether the protocol is HTTP/2.
func (p Protocol) IsHTTP2() bool { return p != ProtocolHTTP1 }

// Backend is a port of a Service, for one group of rules.
type Backend struct {
	// ID is service:port, or namespace/service:port for another namespace than the
	// gateway's own, and // and the group of rules with settings of their own. It is the same in every table, and no other backend
	// has it.
	ID string
	// Index is the index in Table.Backends.
	Index int
	// Namespace, Service and Port name the port of the Service. An empty namespace is the
	// gateway's own.
	Namespace string
	Service   string
	Port      int32
	// Transport says how the endpoints are reached.
	Transport Transport
	// Protocol is the protocol of the endpoints, for HTTP.
	Protocol Protocol
	// Endpoints are the ready endpoints, as host:port, sorted and without duplicates. It
	// may be empty.
	Endpoints []string
	// HealthCheck is the active health check of the endpoints. Nil means none.
	HealthCheck *HealthCheck
	// ChecksOf is whose checks have one pace. Empty: no pace.
	ChecksOf string
	// TLS is how the endpoints are reached with TLS. Nil means without.
	TLS *BackendTLS
	// Limits bound the concurrent use of the backend.
	Limits Limits
}

// ServiceName returns the name of the Service, as metrics show it.
func (b *Backend) ServiceName() string { return ServiceName{b.Namespace, b.Service}.String() }

// Limits bound the concurrent use of a backend. 0 means no bound, except for Pending: a rule must have one of each (Wrong). A
// client gets at most its share of each (clients.Places).
type Limits struct {
	// Connections bounds the connections to all endpoints together, without those of health
	// checks. Over HTTP/1.1 each request has its own connection.
	Connections int
	// Pending bounds the requests that wait for a connection.
	Pending int
	// Requests bounds the requests in flight, up to the end of their responses, including
	// those that wait.
	Requests int
}

// DefaultLimits returns the limits of a backend without any of its own.
func DefaultLimits() Limits { return Limits{Connections: 4096, Pending: 1024, Requests: 8192} }

// Wrong says what is wrong with the limits. It is empty for valid ones.
func (l Limits) Wrong() string {
	if l.Connections < 1 || l.Pending < 0 || l.Requests < 1 {
		return "maxConnections and maxRequests must be at least 1, maxPendingRequests at least 0"
	}
	return ""
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
