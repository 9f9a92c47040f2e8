package table

import (
	"fmt"
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// compileBackends resolves the Services that a route names. The route uses those that
// exist.
func (c *compiler) compileBackends(route *Route, spec *slipwayv1alpha1.Route) []*fault {
	var faults []*fault
	backend := func(field string, name slipwayv1alpha1.ServiceName, port, weight int32) *Backend {
		b, f := c.backend(field, string(name), port)
		// A backend with weight 0, such as the idle side of a blue-green pair, may be
		// scaled to zero.
		if f != nil && (weight > 0 || f.reason != slipwayv1alpha1.ReasonNoEndpoints) {
			faults = append(faults, f)
		}
		return b
	}
	if spec.BackendService != nil {
		b := backend("backendService", spec.BackendService.Name, spec.BackendService.Port, 1)
		route.Backends = []WeightedBackend{{b, 1}}
	}
	for _, in := range spec.Backends {
		weight := max(value(in.Weight, 1), 0)
		route.Backends = append(route.Backends, WeightedBackend{backend("backends", in.Name, in.Port, weight), uint32(weight)})
	}
	if spec.Mirror != nil {
		percent := min(max(value(spec.Mirror.Percent, 100), 0), 100)
		b := backend("mirror.backendService", spec.Mirror.BackendService.Name, spec.Mirror.BackendService.Port, percent)
		route.Mirror = &Mirror{Backend: b, Percent: uint32(percent)}
	}
	sum := uint64(0)
	for _, b := range route.Backends {
		if b.Weight > 0 && len(b.Endpoints) > 0 {
			sum += uint64(b.Weight)
			route.usable.backends = append(route.usable.backends, b.Backend)
			route.usable.sums = append(route.usable.sums, sum)
		}
	}
	return faults
}

// backend returns the Backend for a port of a Service. All routes share it. If the Service
// or the port is missing, it has no endpoints.
func (c *compiler) backend(field, name string, port int32) (*Backend, *fault) {
	id := backendID(name, port)
	service, found := c.in.Services[name]
	known := service.Ports[port]
	policy := c.policies[id]
	protocol, supported := policy.protocolOf(known.AppProtocol)

	b := c.backends[id]
	if b == nil {
		b = &Backend{ID: id, Service: name, Port: port, Protocol: protocol, Limits: policy.limits()}
		if supported {
			b.Endpoints = slices.Compact(slices.Sorted(slices.Values(known.Endpoints)))
		}
		c.backends[id] = b
	}

	if !found {
		return b, &fault{slipwayv1alpha1.ReasonBackendNotFound, fmt.Sprintf("%s: Service %q does not exist", field, name)}
	}
	if service.External {
		return b, &fault{slipwayv1alpha1.ReasonUnsupportedService, fmt.Sprintf("%s: Service %q is of type ExternalName, which the gateway does not follow", field, name)}
	}
	if _, found := service.Ports[port]; !found {
		return b, &fault{slipwayv1alpha1.ReasonPortNotFound, fmt.Sprintf("%s: Service %q has no port %d", field, name, port)}
	}
	if !supported {
		return b, &fault{slipwayv1alpha1.ReasonUnsupportedProtocol, fmt.Sprintf("%s: port %d of Service %q has appProtocol %q; the gateway speaks HTTP/1.1, kubernetes.io/h2c and grpc", field, port, name, known.AppProtocol)}
	}
	if len(b.Endpoints) == 0 {
		return b, &fault{slipwayv1alpha1.ReasonNoEndpoints, fmt.Sprintf("%s: no endpoint of Service %q is ready on port %d", field, name, port)}
	}
	return b, nil
}

func backendID(service string, port int32) string { return fmt.Sprintf("%s:%d", service, port) }

func protocolOf(appProtocol string) (Protocol, bool) {
	switch appProtocol {
	case "", "http", "ws", "kubernetes.io/ws":
		return ProtocolHTTP1, true
	case "kubernetes.io/h2c", "h2c", "http2":
		return ProtocolH2C, true
	case "grpc":
		return ProtocolGRPC, true
	default:
		return ProtocolHTTP1, false
	}
}
