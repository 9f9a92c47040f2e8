package proxy

import (
	"fmt"
	"net/netip"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// NewConfig returns what the spec says about all requests; the table is still to come.
// The error names the field.
func NewConfig(spec *slipwayv1alpha1.APIGatewaySpec) (Config, error) {
	config := Config{LogPercent: 100}
	if log := spec.AccessLog; log != nil && log.SamplePercent != nil {
		config.LogPercent = uint32(min(max(*log.SamplePercent, 0), 100))
	}
	for i, text := range spec.TrustedProxies {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return Config{}, fmt.Errorf("spec.trustedProxies[%d]: %w", i, err)
		}
		config.TrustedProxies = append(config.TrustedProxies, prefix)
	}
	return config, nil
}
