package proxy

import (
	maintenanceserve "github.com/slipway-dev/slipway/internal/gateway/feature/maintenance/serve"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
)

// routeMetrics returns the metrics of routes by their place.
func (h *Handler) routeMetrics(routes []*table.Route) []*telemetry.Route {
	list := make([]*telemetry.Route, len(routes))
	for i, route := range routes {
		if route.Transport != model.TransportHTTP {
			continue
		}
		planned := ""
		if route.Maintenance != nil {
			planned = maintenanceserve.Planned
		}
		list[i] = h.metrics.Route(route.Name, planned)
	}
	return list
}

// keepMetrics removes the series of routes that are gone.
func (h *Handler) keepMetrics(routes []*table.Route) {
	all, streams := make(map[string]bool, len(routes)), map[string]bool{}
	for _, route := range routes {
		all[route.Name] = true
		if route.Transport != model.TransportHTTP {
			streams[route.Name] = true
		}
	}
	h.metrics.Keep(all)
	h.metrics.KeepStreams(streams)
	h.features.compression.Keep(all)
}
