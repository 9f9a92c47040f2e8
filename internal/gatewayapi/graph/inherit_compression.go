package graph

import (
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// uncompressed finds the policy that takes compression away from what an override of a less specific target compresses. Who
// writes more specific policies knows which pages hold a secret. Nil: nothing is taken away.
func uncompressed(layers []*layer) (*GatewayPolicy, stanza) {
	first := slices.IndexFunc(layers, func(l *layer) bool { return l.holds[overrides][compressionSetting] != nil })
	if first < 0 {
		return nil, defaults
	}
	p, which := inherited(layers[first+1:], compressionSetting)
	if p == nil || !slices.Contains(p.stanza(which).Compression.Algorithms, slipwayv1alpha1.CompressionIdentity) {
		return nil, defaults
	}
	return p, which
}
