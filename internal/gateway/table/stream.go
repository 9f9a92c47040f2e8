package table

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Streams reports whether a port has listeners that are not for HTTP. secure means a port on which clients speak TLS.
func (t *Table) Streams(number int32, secure bool) bool {
	at := t.ports[portKey{number: number, secure: secure}]
	return at != nil && at.streams
}

// Stream returns what happens with a connection, or with datagrams, on a port. name is the name that the client asks for with
// TLS, in lower case, empty if there is none. found tells that there is a listener. If it is not for HTTP, the route is where
// the connection goes, or nil.
func (t *Table) Stream(number int32, secure, udp bool, name string) (transport model.Transport, route *Route, found bool) {
	at := t.ports[portKey{number, secure, udp}]
	if at == nil {
		return model.TransportHTTP, nil, false
	}
	l := at.find(name)
	if l == nil {
		return model.TransportHTTP, nil, false
	}
	return l.transport, l.stream(name), true
}

// stream returns the listener's route for a name, or nil. A route by a more exact name comes first.
func (l *listener) stream(name string) *Route {
	if h := l.exact[name]; h != nil && h.stream != nil {
		return h.stream
	}
	if len(l.wildcard) > 0 {
		for rest := name; ; {
			_, parent, found := strings.Cut(rest, ".")
			if !found {
				break
			}
			if h := l.wildcard[parent]; h != nil && h.stream != nil {
				return h.stream
			}
			rest = parent
		}
	}
	if l.any != nil {
		return l.any.stream
	}
	return nil
}
