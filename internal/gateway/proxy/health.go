package proxy

import (
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// checkOf returns how the endpoints of a backend are checked, the zero value for not at all.
func checkOf(backend *table.Backend) upstream.Check {
	in := backend.HealthCheck
	if in == nil {
		return upstream.Check{}
	}
	check := upstream.Check{
		Path: in.Path, Host: in.Host, Period: in.Period, Timeout: in.Timeout, Healthy: in.Healthy, Unhealthy: in.Unhealthy,
	}
	if backend.Protocol == table.ProtocolH2C {
		check.Protocol = upstream.HTTP2
	}
	return check
}

// checked is told of every check of an endpoint.
func (h *Handler) checked(result upstream.CheckResult) {
	h.metrics.checked(result.Service, result.Err)
	if result.Changed && h.options.HealthChanged != nil {
		h.options.HealthChanged(result.Service, result.Endpoint, result.Err)
	}
}
