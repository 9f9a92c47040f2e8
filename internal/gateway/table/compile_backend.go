package table

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// compileBackends resolves the Services that a rule names. The route uses those that exist.
func (c *compiler) compileBackends(e *compiled, rule *Rule) []*model.Fault {
	var faults []*model.Fault
	shares := make([]share, 0, len(rule.Backends))
	e.StrictShares = rule.StrictShares
	for i := range rule.Backends {
		ref := &rule.Backends[i]
		b, f := c.groupBackend(ref, rule.Transport, rule.BackendSettings)
		if f != nil && (ref.Weight > 0 || !mayBeIdle(f)) {
			faults = append(faults, f)
		}
		s := share{backend: -1, lack: lackOf(f), sum: uint64(ref.Weight)}
		if e.Affinity != nil {
			s.seed = seedOf(ref, rule.Backends[:i])
		}
		if b != nil {
			s.backend = len(e.Backends)
			mirrors, more := c.mirrors(ref.Mirrors, rule.BackendSettings)
			var edits backendEdits
			if e.edits != nil {
				edits = e.edits[i]
			}
			e.Backends = append(e.Backends, WeightedBackend{
				Backend: b, Weight: ref.Weight, Mirrors: mirrors,
				Rewrite: edits.rewrite, RequestHeaders: edits.request, ResponseHeaders: edits.response,
			})
			faults = append(faults, more...)
		}
		shares = append(shares, s)
	}
	mirrors, more := c.mirrors(rule.Mirrors, rule.BackendSettings)
	e.Mirrors = mirrors
	e.share(shares)
	return append(append(faults, more...), c.askExternal(e)...)
}

// mirrors resolves the Services that get copies.
func (c *compiler) mirrors(refs []model.MirrorRef, own *model.BackendSettings) (mirrors []Mirror, faults []*model.Fault) {
	for i := range refs {
		ref := &refs[i]
		to := &model.BackendRef{Namespace: ref.Namespace, Service: ref.Service, Port: ref.Port, Field: ref.Field, Fault: ref.Fault}
		b, f := c.groupBackend(to, model.TransportHTTP, own)
		if f != nil && (ref.Numerator > 0 || !mayBeIdle(f)) {
			faults = append(faults, f)
		}
		if b != nil {
			mirrors = append(mirrors, Mirror{Backend: b, Numerator: ref.Numerator, Denominator: ref.Denominator})
		}
	}
	return mirrors, faults
}

// mayBeIdle reports whether a backend without weight may have the fault. The idle side of a
// blue-green pair may be scaled to zero.
func mayBeIdle(f *model.Fault) bool { return f.Reason == model.ReasonNoEndpoints }

func lackOf(f *model.Fault) Lack {
	switch {
	case f == nil:
		return LackNothing
	case f.Reason == model.ReasonNoEndpoints:
		return LackEndpoints
	default:
		return LackBackend
	}
}

// backend returns the Backend for a port of a Service that all routes without settings share.
func (c *compiler) backend(ref *model.BackendRef, transport model.Transport) (*model.Backend, *model.Fault) {
	return c.groupBackend(ref, transport, nil)
}

// groupBackend returns the Backend for a port of a Service. All routes of a group share it. If the Service
// or the port is missing, it has no endpoints. It is nil if it must not be used.
func (c *compiler) groupBackend(
	ref *model.BackendRef, transport model.Transport, own *model.BackendSettings,
) (*model.Backend, *model.Fault) {
	if ref.Fault != nil {
		return nil, &model.Fault{Reason: ref.Fault.Reason, Message: ref.Field + ": " + ref.Fault.Message}
	}
	name := model.BackendName{
		ServiceName: model.ServiceName{Namespace: ref.Namespace, Name: ref.Service}, Port: ref.Port, Transport: transport,
	}
	settings := c.settings[name]
	if settings.Fault != nil {
		return nil, &model.Fault{Reason: settings.Fault.Reason, Message: ref.Field + ": " + settings.Fault.Message}
	}
	service, found := c.in.Services[name.ServiceName]
	known, hasPort := service.Port(name)
	settings = replace(own, settings, transport)
	name.Group = groupOf(own)
	protocol, supported := protocolOf(known.AppProtocol)
	supported = supported || transport != model.TransportHTTP // it is not looked at what they speak
	if settings.TLS != nil && !supported {
		supported = speaksTLS(known.AppProtocol)
	}
	if settings.Protocol != nil {
		protocol, supported = *settings.Protocol, true
	}

	b := c.backends[name]
	if b == nil {
		b = &model.Backend{
			ID: name.String(), Namespace: name.Namespace, Service: name.Name, Port: name.Port, Transport: transport, Protocol: protocol,
			Limits: model.DefaultLimits(), HealthCheck: settings.HealthCheck, TLS: settings.TLS,
		}
		if own != nil {
			b.ChecksOf = own.ChecksOf
		}
		if settings.Limits != nil {
			b.Limits = *settings.Limits
		}
		if supported {
			b.Endpoints = slices.Compact(slices.Sorted(slices.Values(known.Endpoints)))
		}
		c.backends[name] = b
	}

	fault := func(reason, format string, args ...any) (*model.Backend, *model.Fault) {
		return b, &model.Fault{Reason: reason, Message: ref.Field + ": " + fmt.Sprintf(format, args...)}
	}
	switch text := name.ServiceName.String(); {
	case !found:
		return fault(model.ReasonBackendNotFound, "Service %q does not exist", text)
	case service.External:
		return fault(model.ReasonUnsupportedService, "Service %q is of type ExternalName, which the gateway does not follow", text)
	case !hasPort:
		return fault(model.ReasonPortNotFound, "Service %q has no port %d", text, name.Port)
	case !supported:
		return fault(model.ReasonUnsupportedProtocol,
			"port %d of Service %q has appProtocol %q; the gateway speaks HTTP/1.1, kubernetes.io/h2c and grpc",
			name.Port, text, known.AppProtocol)
	case len(b.Endpoints) == 0:
		return fault(model.ReasonNoEndpoints, "no endpoint of Service %q is ready on port %d", text, name.Port)
	}
	return b, nil
}

// speaksTLS reports whether an appProtocol is HTTP/1.1 over TLS. It is no use without settings for
// TLS, because nobody would know whom to trust.
func speaksTLS(appProtocol string) bool {
	return strings.EqualFold(appProtocol, "https") || appProtocol == "kubernetes.io/wss"
}

func protocolOf(appProtocol string) (model.Protocol, bool) {
	switch appProtocol {
	case "", "http", "ws", "kubernetes.io/ws":
		return model.ProtocolHTTP1, true
	case "kubernetes.io/h2c", "h2c", "http2":
		return model.ProtocolH2C, true
	case "grpc":
		return model.ProtocolGRPC, true
	default:
		return model.ProtocolHTTP1, false
	}
}

// askExternal resolves the Service that a route asks about its requests.
func (c *compiler) askExternal(e *compiled) []*model.Fault {
	if e.Auth == nil || e.Auth.External == nil {
		return nil
	}
	b, f := c.backend(&e.Auth.External.Ref, model.TransportHTTP)
	e.Auth.External.Backend = b
	if f != nil {
		return []*model.Fault{f}
	}
	return nil
}
