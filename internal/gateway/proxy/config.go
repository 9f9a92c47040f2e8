package proxy

import (
	"fmt"
	"net/netip"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/connlimit"
)

// These are the defaults for the connections of clients.
const (
	defaultConnections = 10000
	defaultRequests    = 10000
)

// limitOf returns a bound from the spec, or the fallback if it is not set or below 1.
func limitOf(in *int32, fallback int) int {
	if in == nil || *in < 1 {
		return fallback
	}
	return int(*in)
}

// NewConfig returns the part of the spec that concerns all requests. The caller adds the
// table. The error names the field.
func NewConfig(spec *slipwayv1alpha1.APIGatewaySpec) (Config, error) {
	config := Config{LogPercent: 100}
	if log := spec.AccessLog; log != nil && log.SamplePercent != nil {
		config.LogPercent = uint32(min(max(*log.SamplePercent, 0), 100))
	}
	limits := spec.Connections
	if limits == nil {
		limits = &slipwayv1alpha1.ConnectionLimits{}
	}
	config.Connections = connlimit.Limits{Total: limitOf(limits.Max, defaultConnections), PerClient: limitOf(limits.MaxPerClient, 0)}
	config.Requests = limitOf(limits.MaxRequests, max(defaultRequests, config.Connections.Total))
	for i, text := range spec.TrustedProxies {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return Config{}, fmt.Errorf("spec.trustedProxies[%d]: %w", i, err)
		}
		config.TrustedProxies = append(config.TrustedProxies, prefix)
	}
	config.Connections.Exempt = config.TrustedProxies
	return config, nil
}
