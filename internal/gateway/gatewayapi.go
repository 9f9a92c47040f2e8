package gateway

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/watch"
)

// followGateway serves the Gateway from the cluster until the context ends.
func (g *gateway) followGateway(ctx context.Context) error {
	access, err := g.access()
	if err != nil {
		return err
	}
	options := watch.GatewayOptions{
		Access: access, Namespace: g.options.Namespace, Name: g.options.Gateway,
		Namespaces: g.options.Namespaces, Settings: g.options.Settings, BorrowedCertificates: g.options.BorrowedCertificates,
		Clock: g.clock, Log: g.options.Log.With("namespace", g.options.Namespace, "gateway", g.options.Gateway),
		Board: g.board, MissingKeys: g.handler.MissingKeys, MissingKeysChanged: g.keysMissingChanged,
		Shared: g.shared, SharedChanged: g.sharedChanged, ReservedPorts: []int32{peers.Port},
		Apply: func(config watch.GatewayConfig) (map[watch.Port]error, error) { return g.apply(ctx, config) },
	}
	if g.adminPort != 0 {
		options.ReservedPorts = append(options.ReservedPorts, g.adminPort)
	}
	return watch.NewGateway(options).Run(ctx)
}

// apply serves a configuration. A new port opens after its rules are there. An old one closes
// after its rules are gone.
func (g *gateway) apply(ctx context.Context, config watch.GatewayConfig) (closed map[watch.Port]error, err error) {
	if err := g.certificates.SetListeners(config.Secure); err != nil {
		return nil, fmt.Errorf("serve the certificates: %w", err)
	}
	g.handler.Set(config.Proxy)
	closed, opened := g.listen(ctx, config.Ports)
	g.opened.Store(opened || len(config.Ports) == 0)
	return closed, nil
}

// listen listens at exactly these ports. It returns those that could not be opened, and whether any is open.
func (g *gateway) listen(ctx context.Context, wanted map[watch.Port]bool) (closed map[watch.Port]error, opened bool) {
	var places []proxy.Place
	ports := map[proxy.Place]watch.Port{}
	for port := range wanted {
		place := proxy.Place{Address: net.JoinHostPort("", strconv.Itoa(int(port.Number))), Kind: port.Kind}
		places, ports[place] = append(places, place), port
	}
	closed = map[watch.Port]error{}
	for place, err := range g.server.Listen(ctx, places) {
		closed[ports[place]] = err
	}
	return closed, len(closed) < len(places)
}

// ready reports whether there is a table, and for a Gateway whether its ports are open. One
// that cannot be opened is reported, and does not keep the gateway from serving the others.
func (g *gateway) ready() bool {
	return g.handler.Ready() && (g.options.Kind != KindGateway || g.opened.Load())
}
