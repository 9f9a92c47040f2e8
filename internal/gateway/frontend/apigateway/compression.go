package apigateway

import (
	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// addCompression adds which responses are compressed. The table checks it.
func addCompression(rule *table.Rule, in *slipwayv1alpha1.Compression) *model.Fault {
	if in == nil {
		return nil
	}
	policy := &compress.Policy{MinBytes: int64(value(in.MinBytes, 0)), Types: words(in.ContentTypes)}
	if in.MinBytes != nil && *in.MinBytes < 1 {
		return invalid("compression.minBytes: %d is less than 1", *in.MinBytes)
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
			return invalid("compression.algorithms: %q is not one of Gzip, Zstd and Identity", name)
		}
	}
	rule.Compression = policy
	return nil
}
