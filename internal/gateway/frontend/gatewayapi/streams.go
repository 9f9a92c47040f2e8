package gatewayapi

import (
	"github.com/slipway-dev/slipway/internal/gateway/model"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"k8s.io/apimachinery/pkg/types"
)

// kindsOf are the kinds of routes that can attach to listeners of a protocol. A protocol that is missing is not supported.
var kindsOf = map[gatewayv1.ProtocolType][]Kind{
	gatewayv1.HTTPProtocolType:  {HTTPRoute, GRPCRoute},
	gatewayv1.HTTPSProtocolType: {HTTPRoute, GRPCRoute},
	gatewayv1.TLSProtocolType:   {TLSRoute},
	gatewayv1.TCPProtocolType:   {TCPRoute},
	gatewayv1.UDPProtocolType:   {UDPRoute},
}

// socket is what listeners share: a port number is two ports, one for TCP and one for UDP.
type socket struct {
	port int32
	udp  bool
}

func (l *Listener) udp() bool { return l.Protocol == gatewayv1.UDPProtocolType }

func (l *Listener) socket() socket { return socket{l.Port, l.udp()} }

// speech is what clients speak on a port first. Listeners for HTTPS and TLS share a port: the name in the first message of TLS
// tells which one is meant.
func speech(protocol gatewayv1.ProtocolType) gatewayv1.ProtocolType {
	if protocol == gatewayv1.HTTPSProtocolType {
		return gatewayv1.TLSProtocolType
	}
	return protocol
}

// transport is how the table calls what the listener does with connections.
func (l *Listener) transport() model.Transport {
	switch {
	case l.udp():
		return model.TransportUDP
	case l.Passes():
		return model.TransportTLS
	case l.Protocol == gatewayv1.TLSProtocolType || l.Protocol == gatewayv1.TCPProtocolType:
		return model.TransportTCP
	default:
		return model.TransportHTTP
	}
}

// streamParts are the parts of a listener that is not for HTTP.
func (l *Listener) streamParts() []string {
	if transport := l.transport(); transport != model.TransportHTTP {
		return []string{"transport: " + string(transport)}
	}
	return nil
}

// supportsTLS tells what of a listener of protocol TLS is not supported. Certificates of one that passes TLS through are ignored,
// as the API says.
func (l *Listener) supportsTLS() *fault {
	if l.spec.TLS == nil {
		return faultf(gatewayv1.ListenerReasonUnsupportedValue, "tls: protocol TLS needs a certificate in tls.certificateRefs, or tls.mode Passthrough")
	}
	switch mode := value(l.spec.TLS.Mode, gatewayv1.TLSModeTerminate); mode {
	case gatewayv1.TLSModeTerminate, gatewayv1.TLSModePassthrough:
		return nil
	default:
		return faultf(gatewayv1.ListenerReasonUnsupportedValue, "tls.mode: %q is not supported", mode)
	}
}

// transport is how the backends of a route are reached. A TLSRoute passes TLS through, unless the listener ends it.
func (r *Route) transport() model.Transport {
	switch r.Kind {
	case TLSRoute:
		return model.TransportTLS
	case TCPRoute:
		return model.TransportTCP
	case UDPRoute:
		return model.TransportUDP
	default:
		return model.TransportHTTP
	}
}

// tlsRules reads the rules of a TLSRoute.
func tlsRules(of *gatewayv1.TLSRoute) []rule {
	rules := make([]rule, 0, len(of.Spec.Rules))
	for i, spec := range of.Spec.Rules {
		rules = append(rules, streamRule(i, model.TransportTLS, spec.Name, spec.BackendRefs))
	}
	return rules
}

// tcpRules reads the rules of a TCPRoute.
func tcpRules(of *gatewayv1.TCPRoute) []rule {
	rules := make([]rule, 0, len(of.Spec.Rules))
	for i, spec := range of.Spec.Rules {
		rules = append(rules, streamRule(i, model.TransportTCP, spec.Name, spec.BackendRefs))
	}
	return rules
}

// udpRules reads the rules of a UDPRoute.
func udpRules(of *gatewayv1.UDPRoute) []rule {
	rules := make([]rule, 0, len(of.Spec.Rules))
	for i, spec := range of.Spec.Rules {
		rules = append(rules, streamRule(i, model.TransportUDP, spec.Name, spec.BackendRefs))
	}
	return rules
}

// streamRule makes a rule that says nothing but where connections or datagrams go.
func streamRule(index int, transport model.Transport, name *gatewayv1.SectionName, refs []gatewayv1.BackendRef) rule {
	r := newRule(index, name)
	r.matches = []match{{}}
	r.action.Transport = transport
	for i := range refs {
		r.backend(i, refs[i], nil)
	}
	return r
}

// usableByStreams tells why a port of a Service cannot be used by a route that is not for HTTP. What is spoken there, the clients
// and the endpoints know.
func (b *builder) usableByStreams(route *Route, name types.NamespacedName, port Port) *fault {
	if route.Kind == UDPRoute && b.policyFor(name, port.Name) != nil {
		return faultf(gatewayv1.RouteReasonUnsupportedProtocol, "a BackendTLSPolicy asks for TLS with Service %q, which is not spoken over UDP", nameFrom(route.Name.Namespace, name))
	}
	return nil
}

// ended is a backend of a TLSRoute as a listener reaches it that ends the TLS of clients: with the TLS that a policy asks for, if
// there is one.
func (b *builder) ended(in model.BackendRef) model.BackendRef {
	if in.Fault != nil {
		return in
	}
	if f := b.secure(types.NamespacedName{Namespace: in.Namespace, Name: in.Service}, in.Port, model.TransportTCP); f != nil {
		in.Fault = &model.Fault{Reason: f.reason, Message: f.message}
	}
	return in
}

func overUDP(kind Kind) string {
	if kind == UDPRoute {
		return " for UDP"
	}
	return ""
}

// behind reports whether older routes have all of these listeners, where nothing but the listener selects a route. The oldest one
// gets everything.
func (b *builder) behind(g *Graph, route *Route, listeners []int) bool {
	if route.Kind != TCPRoute && route.Kind != UDPRoute {
		return false
	}
	for _, i := range listeners {
		if g.Listeners[i].Valid && !b.firsts[i] {
			return false
		}
	}
	return len(listeners) > 0
}
