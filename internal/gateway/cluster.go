package gateway

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/internal/gateway/watch"
)

// followCluster serves the APIGateway from the cluster until the context ends.
func (g *gateway) followCluster(ctx context.Context) error {
	access := g.options.Access
	if access == nil {
		var err error
		if access, err = rest.InClusterConfig(); err != nil {
			return fmt.Errorf("find the API server: %w", err)
		}
		access.UserAgent = "slipway-gateway/" + g.options.Version
	}
	source := watch.New(watch.Options{
		Access: access, Namespace: g.options.Namespace, Name: g.options.Gateway,
		Clock: g.clock, Log: g.options.Log.With("namespace", g.options.Namespace, "apigateway", g.options.Gateway),
		Board: g.board,
		Apply: func(config watch.Config) error {
			if err := g.certificates.Set(config.Certificates); err != nil {
				return err
			}
			g.handler.Set(config.Proxy)
			return nil
		},
		MissingKeys: g.handler.MissingKeys, MissingKeysChanged: g.keysMissingChanged,
	})
	return source.Run(ctx)
}
