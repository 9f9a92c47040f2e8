package proxy

import (
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// checkOf returns the health check of a backend. The zero value means no check.
func checkOf(backend *model.Backend) upstream.Check {
	in := backend.HealthCheck
	if in == nil {
		return upstream.Check{}
	}
	check := upstream.Check{
		Path: in.Path, Host: in.Host, Period: in.Period, Timeout: in.Timeout, Healthy: in.Healthy, Unhealthy: in.Unhealthy, Owner: backend.ChecksOf,
	}
	check.Protocol = protocolOf(backend)
	return check
}

// protocolOf returns the protocol of a backend's endpoints.
func protocolOf(backend *model.Backend) upstream.Protocol {
	if backend.Transport != model.TransportHTTP {
		return upstream.Stream
	}
	if backend.Protocol.IsHTTP2() {
		return upstream.HTTP2
	}
	return upstream.HTTP1
}

// checked is called after each check of an endpoint.
func (h *Handler) checked(result upstream.CheckResult) {
	h.metrics.Checked(result.Service, result.Err)
	if result.Changed && h.options.HealthChanged != nil {
		h.options.HealthChanged(result.Service, result.Endpoint, result.Err)
	}
}
