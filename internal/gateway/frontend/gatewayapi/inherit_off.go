package gatewayapi

import (
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// switchedOff finds the policy that takes compression or the cache away from what an override of a less specific target wants. Who
// writes more specific policies knows which pages hold a secret, and which depend on what no cache compares. Nil: nothing is taken
// away.
func switchedOff(layers []*layer, one setting) (*GatewayPolicy, stanza) {
	first := slices.IndexFunc(layers, func(l *layer) bool { return l.holds[overrides][one] != nil })
	if first < 0 {
		return nil, defaults
	}
	p, which := inherited(layers[first+1:], one)
	if p == nil || !isOff(p.stanza(which), one) {
		return nil, defaults
	}
	return p, which
}

// isOff reports whether settings switch one of them off.
func isOff(s *slipwayv1alpha1.GatewayPolicySettings, one setting) bool {
	if one == cacheSetting {
		return s.Cache.Mode == slipwayv1alpha1.CacheOff
	}
	return slices.Contains(s.Compression.Algorithms, slipwayv1alpha1.CompressionIdentity)
}
