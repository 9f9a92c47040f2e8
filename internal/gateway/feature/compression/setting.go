// Package compression says which responses of a route are compressed. It is pure: package compress does it.
package compression

import (
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Setting is that of compression.
var Setting = feature.Setting[*compress.Policy, *compress.Policy]{
	Name:     "compression",
	Asked:    func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.Compression != nil },
	Read:     read,
	Compile:  compile,
	Covers:   feature.Nothing,
	Inherits: feature.Withdrawn,
	Off: func(in *slipwayv1alpha1.GatewayPolicySettings) bool {
		return slices.Contains(in.Compression.Algorithms, slipwayv1alpha1.CompressionIdentity)
	},
	NotGRPC:  true,
	Backends: true,
}

func read(settings *slipwayv1alpha1.GatewayPolicySettings, _ feature.Source) (*compress.Policy, *model.Fault) {
	in := settings.Compression
	policy := &compress.Policy{MinBytes: int64(feature.Value(in.MinBytes, 0)), Types: feature.Words(in.ContentTypes)}
	if in.MinBytes != nil && *in.MinBytes < 1 {
		return nil, model.Invalid("compression.minBytes: %d is less than 1", *in.MinBytes)
	}
	for _, name := range in.Algorithms {
		switch name {
		case slipwayv1alpha1.CompressionGzip:
			policy.Codings = append(policy.Codings, compress.Gzip)
		case slipwayv1alpha1.CompressionZstd:
			policy.Codings = append(policy.Codings, compress.Zstd)
		case slipwayv1alpha1.CompressionIdentity:
			policy.Codings = append(policy.Codings, compress.Identity)
		default:
			return nil, model.Invalid("compression.algorithms: %q is not one of Gzip, Zstd and Identity", name)
		}
	}
	return policy, nil
}

func compile(asked *compress.Policy, _ feature.Rule) (*compress.Policy, *model.Fault) {
	policy, err := asked.Complete()
	if err != nil {
		return nil, model.Invalid("compression.%v", err)
	}
	return policy, nil
}
