package gatewayapi

import (
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// overlaps finds listeners for HTTPS on the same port whose hostnames have names in common. A client may use the connection to
// one for requests to the other (RFC 9113, 9.1.1). There may be thousands of listeners in ListenerSets, so they are looked up
// by their hostnames.
type overlaps struct {
	// named has the first listener with a hostname.
	named map[listenerAddress]*Listener
	// below has the first listener whose hostname is below a wildcard, and is another one.
	below map[listenerAddress]*Listener
	// at is the place of each listener.
	at map[*Listener]int
}

func newOverlaps(all []*Listener) overlaps {
	o := overlaps{named: map[listenerAddress]*Listener{}, below: map[listenerAddress]*Listener{}, at: map[*Listener]int{}}
	for i, l := range all {
		if l.Protocol != gatewayv1.HTTPSProtocolType || l.barred {
			continue
		}
		o.at[l] = i
		keepFirst(o.named, listenerAddress{l.socket(), l.Hostname}, l)
		for _, above := range wildcardsAbove(l.Hostname) {
			keepFirst(o.below, listenerAddress{l.socket(), above}, l)
		}
	}
	return o
}

func keepFirst(in map[listenerAddress]*Listener, at listenerAddress, l *Listener) {
	if in[at] == nil {
		in[at] = l
	}
}

// with is the first other listener that one overlaps with, nil if there is none.
func (o overlaps) with(l *Listener) *Listener {
	if _, known := o.at[l]; !known {
		return nil
	}
	found := o.below[listenerAddress{l.socket(), l.Hostname}]
	for _, above := range wildcardsAbove(l.Hostname) {
		if other := o.named[listenerAddress{l.socket(), above}]; other != nil && (found == nil || o.at[other] < o.at[found]) {
			found = other
		}
	}
	return found
}

// wildcardsAbove are the hostnames other than this one that cover it: every name, and wildcards.
func wildcardsAbove(hostname string) []string {
	if hostname == "" {
		return nil
	}
	above := []string{""}
	rest := strings.TrimPrefix(hostname, wildcard)
	for {
		_, parent, more := strings.Cut(rest, ".")
		if !more {
			return above
		}
		above, rest = append(above, wildcard+parent), parent
	}
}
