package gatewayapi

import "slices"

// switchedOff finds the policy that takes compression or the cache away from what an override of a less specific target wants. Who
// writes more specific policies knows which pages hold a secret, and which depend on what no cache compares. Nil: nothing is taken
// away.
func switchedOff(layers []*layer, one setting) (*GatewayPolicy, stanza) {
	first := slices.IndexFunc(layers, func(l *layer) bool { return l.holds[overrides][one] != nil })
	if first < 0 {
		return nil, defaults
	}
	p, which := inherited(layers[first+1:], one)
	if p == nil || !one.entry().Off(p.stanza(which)) {
		return nil, defaults
	}
	return p, which
}
