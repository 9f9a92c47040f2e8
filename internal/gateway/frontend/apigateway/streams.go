package apigateway

import (
	"fmt"
	"maps"
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/address"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// reservedPorts are those of HTTP and HTTPS in the Service, and those that the pods use themselves.
var reservedPorts = map[int32]string{
	80: "HTTP", 443: "HTTPS", 8080: "HTTP of the pods", 8443: "HTTPS of the pods",
	8081: "the admin port of the pods", quota.Port: "rate limits that the pods share",
}

// streamPlace is what only one stream can have.
type streamPlace struct {
	port     int32
	hostname string
}

// StreamFaults says why streams cannot be served as the spec has them, as far as the spec alone tells, in its order. The first of two
// that contradict each other counts.
func StreamFaults(streams []slipwayv1alpha1.Stream) []*model.Fault {
	faults := make([]*model.Fault, len(streams))
	names, ports, places := map[string]bool{}, map[int32]slipwayv1alpha1.StreamProtocol{}, map[streamPlace]string{}
	for i := range streams {
		spec := &streams[i]
		f := streamFault(spec)
		if f == nil && names[spec.Name] {
			f = &model.Fault{Reason: slipwayv1alpha1.ReasonDuplicateName, Message: fmt.Sprintf(
				"name: an earlier stream is called %q", spec.Name)}
		}
		if f == nil {
			f = conflict(spec, ports, places)
		}
		if faults[i] = f; f != nil {
			continue
		}
		names[spec.Name], ports[spec.Port] = true, spec.Protocol
		for _, hostname := range hostnamesOf(spec) {
			places[streamPlace{spec.Port, hostname}] = spec.Name
		}
	}
	return faults
}

// streamFault says what is wrong with one stream.
func streamFault(spec *slipwayv1alpha1.Stream) *model.Fault {
	wrong := func(format string, args ...any) *model.Fault {
		return &model.Fault{Reason: slipwayv1alpha1.ReasonInvalidStream, Message: fmt.Sprintf(format, args...)}
	}
	if use, reserved := reservedPorts[spec.Port]; reserved {
		return &model.Fault{Reason: slipwayv1alpha1.ReasonPortConflict, Message: fmt.Sprintf("port: %d is for %s", spec.Port, use)}
	}
	switch {
	case spec.Name == "" || spec.Name == "http" || spec.Name == "https":
		return wrong("name: %q is the name of another port", spec.Name)
	case spec.Port < 1 || spec.Port > 65535:
		return wrong("port: %d is not a port", spec.Port)
	case spec.Protocol != slipwayv1alpha1.StreamTCP && spec.Protocol != slipwayv1alpha1.StreamTLS:
		return wrong("protocol: %q is neither TCP nor TLS", spec.Protocol)
	case spec.Protocol == slipwayv1alpha1.StreamTCP && (len(spec.Hostnames) > 0 || spec.TLSMode != "" || len(spec.CertificateRefs) > 0):
		return wrong("hostnames, tlsMode and certificateRefs need protocol TLS")
	case !slices.Contains([]slipwayv1alpha1.StreamTLSMode{"", slipwayv1alpha1.StreamPassthrough, slipwayv1alpha1.StreamTerminate},
		spec.TLSMode):
		return wrong("tlsMode: %q is neither Passthrough nor Terminate", spec.TLSMode)
	case terminates(spec) && len(spec.CertificateRefs) == 0:
		return wrong("certificateRefs: tlsMode Terminate needs one")
	case !terminates(spec) && len(spec.CertificateRefs) > 0:
		return wrong("certificateRefs: they need tlsMode Terminate")
	case len(spec.Backends) == 0:
		return wrong("backends: there is none")
	}
	rule := streamRule(spec)
	if f, _ := table.Check(&rule); f != nil {
		return wrong("%s", f.Message)
	}
	return nil
}

// conflict says which earlier stream has the place of a stream.
func conflict(spec *slipwayv1alpha1.Stream, ports map[int32]slipwayv1alpha1.StreamProtocol, places map[streamPlace]string) *model.Fault {
	taken := func(format string, args ...any) *model.Fault {
		return &model.Fault{Reason: slipwayv1alpha1.ReasonPortConflict, Message: fmt.Sprintf(format, args...)}
	}
	protocol, used := ports[spec.Port]
	if used && (protocol != spec.Protocol || protocol == slipwayv1alpha1.StreamTCP) {
		return taken("port: an earlier stream has port %d", spec.Port)
	}
	for _, hostname := range hostnamesOf(spec) {
		if other, is := places[streamPlace{spec.Port, hostname}]; is {
			if hostname == "" {
				return taken("hostnames: the earlier stream %q has port %d and any host name", other, spec.Port)
			}
			return taken("hostnames: the earlier stream %q has port %d and the host name %q", other, spec.Port, hostname)
		}
	}
	return nil
}

// hostnamesOf are those of a stream, or the empty one, which stands for any.
func hostnamesOf(spec *slipwayv1alpha1.Stream) []string {
	if len(spec.Hostnames) == 0 {
		return []string{""}
	}
	return feature.Words(spec.Hostnames)
}

func terminates(spec *slipwayv1alpha1.Stream) bool {
	return spec.TLSMode == slipwayv1alpha1.StreamTerminate
}

// transport is how the table calls what happens with the connections of a stream.
func transport(spec *slipwayv1alpha1.Stream) model.Transport {
	if spec.Protocol == slipwayv1alpha1.StreamTLS && !terminates(spec) {
		return model.TransportTLS
	}
	return model.TransportTCP
}

// streamRule is the rule of a stream. Its name is none that a route can have.
func streamRule(spec *slipwayv1alpha1.Stream) table.Rule {
	rule := table.Rule{Name: "stream:" + spec.Name, Transport: transport(spec)}
	for _, in := range spec.Backends {
		rule.Backends = append(rule.Backends, model.BackendRef{
			Service: in.Name, Port: in.Port,
			Weight: uint32(max(feature.Value(in.Weight, 1), 0)), Field: "backends",
		})
	}
	if spec.ClientAddresses != nil {
		rule.ClientAddresses = &address.Rule{
			Allow: feature.Words(spec.ClientAddresses.Allow),
			Deny:  feature.Words(spec.ClientAddresses.Deny),
		}
	}
	return rule
}

// StreamListener is a listener for connections that are not read as HTTP.
type StreamListener struct {
	Port int32
	// Secure means that clients speak TLS.
	Secure bool
	// Hostname is a lower case DNS name, or one after "*.". Empty: any.
	Hostname string
	// Certificates are the names of Secrets, if the TLS of clients ends here. None: it does not.
	Certificates []string
}

// StreamListeners are those of the streams that can be served.
func (in *Input) StreamListeners() []StreamListener {
	var list []StreamListener
	for i, f := range in.streamFaults() {
		if f != nil {
			continue
		}
		spec := &in.Streams[i]
		var names []string
		for _, ref := range spec.CertificateRefs {
			names = append(names, ref.Name)
		}
		for _, hostname := range hostnamesOf(spec) {
			list = append(list, StreamListener{
				Port: spec.Port, Secure: spec.Protocol == slipwayv1alpha1.StreamTLS, Hostname: hostname,
				Certificates: names,
			})
		}
	}
	return list
}

// streamFaults are those of the streams, with the fields that this program does not know.
func (in *Input) streamFaults() []*model.Fault {
	faults := StreamFaults(in.Streams)
	for i, field := range in.UnknownStreams {
		faults[i] = &model.Fault{Reason: slipwayv1alpha1.ReasonImageIncompatible, Message: fmt.Sprintf(
			"%s: this version of the gateway does not know the field", field)}
	}
	return faults
}

// firstStream is the Index of the rule of the first stream. Those of others are below it, and those of routes above.
const firstStream = -2

// addStreams adds listeners and rules of the streams, and says which cannot be served.
func (c *compiler) addStreams(out *table.Input) {
	caught := map[int32]bool{} // ports for TLS that have a listener for any name
	secure := map[int32]bool{}
	for i, f := range c.in.streamFaults() {
		spec := &c.in.Streams[i]
		if f != nil {
			c.streams = append(c.streams, model.Problem{Index: -1, List: "streams", Route: spec.Name, Reason: f.Reason, Message: f.Message})
			continue
		}
		rule := streamRule(spec)
		rule.Index = firstStream - i
		for _, hostname := range hostnamesOf(spec) {
			rule.Listeners = append(rule.Listeners, len(out.Listeners))
			out.Listeners = append(out.Listeners, table.Listener{
				Name: spec.Name, Port: spec.Port, Secure: spec.Protocol == slipwayv1alpha1.StreamTLS, Hostname: hostname,
				Transport: rule.Transport,
			})
			caught[spec.Port] = caught[spec.Port] || hostname == ""
		}
		secure[spec.Port] = spec.Protocol == slipwayv1alpha1.StreamTLS
		out.Rules = append(out.Rules, rule)
		c.addStreamSettings(&rule)
	}
	// Without a listener of its own, what asks for another name would be served as HTTPS.
	for _, port := range slices.Sorted(maps.Keys(secure)) {
		if secure[port] && !caught[port] {
			out.Listeners = append(out.Listeners, table.Listener{
				Name: fmt.Sprint("others on ", port), Port: port, Secure: true,
				Transport: model.TransportTLS,
			})
		}
	}
}

// addStreamSettings gives backends of a stream what policies say of them. Health checks are requests, so there are none. What is
// passed through has TLS of the client.
func (c *compiler) addStreamSettings(rule *table.Rule) {
	for _, ref := range rule.Backends {
		name := backendName(slipwayv1alpha1.ServiceName(ref.Service), ref.Port)
		settings, has := c.settings[name]
		if !has {
			continue
		}
		settings.Protocol, settings.HealthCheck = nil, nil
		if rule.Transport == model.TransportTLS {
			settings.TLS, settings.Fault = nil, nil
		}
		name.Transport = rule.Transport
		c.settings[name] = settings
	}
}

// problemsOfStreams takes the problems of streams out of those of the table.
func (c *compiler) problemsOfStreams(found []model.Problem) (routes, streams []model.Problem) {
	for _, p := range found {
		if p.Index > firstStream {
			routes = append(routes, p)
			continue
		}
		p.Route, p.Index, p.List = c.in.Streams[firstStream-p.Index].Name, -1, "streams"
		streams = append(streams, p)
	}
	return routes, slices.Concat(c.streams, streams)
}
