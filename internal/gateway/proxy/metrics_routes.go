package proxy

import (
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
			planned = failureMaintenance
		}
		list[i] = h.metrics.Route(route.Name, planned)
	}
	return list
}

// keepMetrics removes the series of routes that are gone, and of routes that ask for a feature no more.
func (h *Handler) keepMetrics(routes []*table.Route) {
	of := func(has func(*table.Route) bool) map[string]bool {
		names := map[string]bool{}
		for _, route := range routes {
			if has(route) {
				names[route.Name] = true
			}
		}
		return names
	}
	all := of(func(*table.Route) bool { return true })
	h.metrics.Keep(all)
	h.compressionMetrics.keep(all)
	h.metrics.KeepStreams(of(func(r *table.Route) bool { return r.Transport != model.TransportHTTP }))
	h.authMetrics.external.Keep(of(func(r *table.Route) bool { return r.Auth != nil && r.Auth.External != nil }))
	h.cacheMetrics.Keep(of(func(r *table.Route) bool { return r.Cache != nil }))
}
