package gateway

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/internal/gateway/watch"
)

// followCluster serves the APIGateway from the cluster until the context ends.
func (g *gateway) followCluster(ctx context.Context) error {
	access, err := g.access()
	if err != nil {
		return err
	}
	source := watch.New(watch.Options{
		Access: access, Namespace: g.options.Namespace, Name: g.options.Gateway,
		Clock: g.clock, Log: g.options.Log.With("namespace", g.options.Namespace, "apigateway", g.options.Gateway),
		Board: g.board,
		Apply: func(config watch.Config) (map[watch.Port]error, error) {
			if err := g.certificates.SetChecked(config.Certificates, config.Clients, config.Secure...); err != nil {
				return nil, err
			}
			g.handler.Set(config.Proxy)
			closed, _ := g.listen(ctx, config.Ports)
			return closed, nil
		},
		MissingKeys: g.handler.MissingKeys, MissingKeysChanged: g.keysMissingChanged,
		Shared: g.shared, SharedChanged: g.sharedChanged,
	})
	return source.Run(ctx)
}

// access returns the access to the API server.
func (g *gateway) access() (*rest.Config, error) {
	if g.options.Access != nil {
		return g.options.Access, nil
	}
	access, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	access.UserAgent = "slipway-gateway/" + g.options.Version
	return access, nil
}
