package table

import "github.com/slipway-dev/slipway/internal/gateway/model"

// Table is a compiled set of rules. It is immutable: all requests share everything in it,
// and nothing in it is written again.
type Table struct {
	// Routes are the routes that can match, in the order of the rules.
	Routes []*Route
	// Backends are the ports of Services that routes use, each of them once, sorted by ID.
	Backends []*model.Backend

	only  *listener // the only listener, if it is for every port and host
	every port      // the listeners of every port
	// ports are the listeners of the ports that a listener names, with those of every port.
	ports map[portKey]*port
}

// portKey is a port of connections with TLS or without.
type portKey struct {
	number int32
	secure bool
	udp    bool
}

// port has the listeners of a port.
type port struct {
	exact    map[string]*listener
	wildcard map[string]*listener // by the part after "*."
	any      *listener            // nil when no listener is for any host
	streams  bool                 // there are listeners that are not for HTTP
}

// listener has the routes of one listener.
type listener struct {
	transport model.Transport

	exact    map[string]*host
	wildcard map[string]*host // by the part after "*."
	any      *host            // nil when no route is for any host

	queryNames map[string]bool // the query parameters that routes look at
}
