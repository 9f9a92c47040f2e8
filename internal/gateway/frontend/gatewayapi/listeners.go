package gatewayapi

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// group is that of the routes and Gateways.
const group = gatewayv1.GroupName

// Listener is a listener of the Gateway, or of a ListenerSet, and what becomes of it.
type Listener struct {
	Name gatewayv1.SectionName
	// Set is the ListenerSet that it is of. Nil: it is the Gateway's own.
	Set      *Set
	Port     int32
	Protocol gatewayv1.ProtocolType
	// Hostname is in lower case. Empty: every name.
	Hostname string
	// Certificates are the Secrets of which a certificate is shown. A listener without TLS has
	// none.
	Certificates []types.NamespacedName
	// Clients is how clients prove who they are. Nil: they need not.
	Clients *Clients
	// Kinds are the kinds of routes that it allows and that are supported, never nil.
	Kinds []gatewayv1.RouteGroupKind
	// Attached is how many routes are accepted on it.
	Attached int32
	// Valid tells that it is to be served. Of one that is not, Why tells the reason.
	Valid bool
	// Conditions are those of the entry in the status of the object that it is of, but for
	// Programmed, which the pods decide.
	Conditions []metav1.Condition

	spec     *gatewayv1.Listener
	owner    owner
	selector labels.Selector // of namespaces; nil: see from
	from     gatewayv1.FromNamespaces
	accepted *fault
	resolved *fault
	conflict *fault
	// barred tells that a listener of a set has no place, because an earlier one has it, or there is none left.
	barred bool
}

// Key is its name among all listeners of the graph. No name of a listener, of a set or of a namespace holds a slash.
func (l *Listener) Key() string {
	if l.Set == nil {
		return string(l.Name)
	}
	return l.Set.Name.String() + "/" + string(l.Name)
}

// Conflict is the reason why another listener has its place. Empty: none has.
func (l *Listener) Conflict() string {
	if l.conflict == nil {
		return ""
	}
	return l.conflict.reason
}

// Parts are what makes the listener what clients see, besides its port and hostname, as document.ListenerDigest wants
// them. secret and bundle return the version of a Secret and of a ConfigMap.
func (l *Listener) Parts(secret, bundle func(types.NamespacedName) string) []string {
	parts := l.streamParts()
	for _, name := range l.Certificates {
		parts = append(parts, name.String()+"@"+secret(name))
	}
	if l.Clients == nil {
		return parts
	}
	parts = append(parts, fmt.Sprintf("clients: optional %t", l.Clients.Optional))
	for _, name := range l.Clients.Bundles {
		parts = append(parts, "clients: "+name.String()+"@"+bundle(name))
	}
	return parts
}

// Why says why the listener is not valid, with the field. It is empty for one that is.
func (l *Listener) Why() string {
	for _, f := range []*fault{l.conflict, l.accepted, l.resolved} {
		if f != nil && !l.Valid {
			return f.message
		}
	}
	return ""
}

// Secure reports whether clients speak TLS to it.
func (l *Listener) Secure() bool {
	return l.Protocol == gatewayv1.HTTPSProtocolType || l.Protocol == gatewayv1.TLSProtocolType
}

// Passes reports whether the TLS of clients goes through to backends.
func (l *Listener) Passes() bool {
	return l.Protocol == gatewayv1.TLSProtocolType && l.spec.TLS != nil && value(l.spec.TLS.Mode, gatewayv1.TLSModeTerminate) == gatewayv1.TLSModePassthrough
}

// HasNames reports whether its names at its port are its own, also while it cannot be served: no other listener has them in its place.
func (l *Listener) HasNames() bool { return l.conflict == nil && !l.barred }

// ends reports whether the TLS of clients ends here, so that it needs a certificate.
func (l *Listener) ends() bool { return l.Secure() && !l.Passes() }

// owner is the object that a listener is of: who refers to Secrets, and which namespace is the same.
type owner struct {
	kind       string
	namespace  string
	uid        types.UID
	generation int64
}

// listeners judges the listeners of the Gateway, and those of its sets after them, in the order of the sets.
func (b *builder) listeners() []*Listener {
	gateway := b.in.Gateway
	of := owner{kind: "Gateway", namespace: gateway.Namespace, uid: gateway.UID, generation: gateway.Generation}
	var all []*Listener
	for i := range gateway.Spec.Listeners {
		all = append(all, b.listener(of, i, &gateway.Spec.Listeners[i]))
	}
	for i, l := range all {
		l.conflict = conflictOf(l, slices.Delete(slices.Clone(all), i, i+1))
	}
	all = append(all, b.listenersOfSets(all)...)
	overlaps := newOverlaps(all)
	for _, l := range all {
		l.Valid = l.accepted == nil && l.conflict == nil && (!l.ends() || len(l.Certificates) > 0)
		l.conclude(overlaps.with(l))
	}
	return all
}

// listener judges one listener by itself.
func (b *builder) listener(of owner, index int, spec *gatewayv1.Listener) *Listener {
	l := &Listener{Name: spec.Name, Port: spec.Port, Protocol: spec.Protocol, Kinds: []gatewayv1.RouteGroupKind{}, spec: spec, owner: of}
	if spec.Hostname != nil {
		l.Hostname = strings.ToLower(string(*spec.Hostname))
	}
	if l.accepted = b.supports(l); l.accepted == nil {
		l.accepted = b.unknown(of, index)
	}
	l.resolved = l.allowKinds()
	if f := l.allowNamespaces(b.in); l.accepted == nil {
		l.accepted = f
	}
	if l.ends() && l.accepted == nil {
		if f := b.certificates(l); f != nil {
			l.resolved = f
		}
		accepted, resolved := b.checkClients(l)
		l.accepted = accepted
		if l.resolved == nil {
			l.resolved = resolved
		}
	}
	return l
}

// supports tells what of the listener is not supported.
func (b *builder) supports(l *Listener) *fault {
	switch l.Protocol {
	case gatewayv1.HTTPProtocolType:
	case gatewayv1.HTTPSProtocolType:
		if l.spec.TLS == nil {
			return faultf(gatewayv1.ListenerReasonUnsupportedValue, "tls: protocol HTTPS needs a certificate in tls.certificateRefs")
		}
		if mode := l.spec.TLS.Mode; mode != nil && *mode != gatewayv1.TLSModeTerminate {
			return faultf(gatewayv1.ListenerReasonUnsupportedValue, "tls.mode: a listener of protocol HTTPS ends TLS itself, so %q is not supported", *mode)
		}
	case gatewayv1.TLSProtocolType:
		if f := l.supportsTLS(); f != nil {
			return f
		}
	case gatewayv1.TCPProtocolType, gatewayv1.UDPProtocolType:
		if l.Hostname != "" || l.spec.TLS != nil {
			return faultf(gatewayv1.ListenerReasonUnsupportedValue, "hostname, tls: a listener of protocol %s has neither", l.Protocol)
		}
	default:
		return faultf(gatewayv1.ListenerReasonUnsupportedProtocol, "protocol: %q is not supported; HTTP, HTTPS, TLS, TCP and UDP are", l.Protocol)
	}
	if !l.udp() && slices.Contains(b.in.ReservedPorts, l.Port) {
		return faultf(gatewayv1.ListenerReasonPortUnavailable, "port: the pods of the gateway need %d for themselves", l.Port)
	}
	return nil
}

// allowKinds notes which kinds of routes are allowed.
func (l *Listener) allowKinds() *fault {
	supported := kindsOf[l.Protocol]
	if l.spec.AllowedRoutes == nil || len(l.spec.AllowedRoutes.Kinds) == 0 {
		for _, kind := range supported {
			l.Kinds = append(l.Kinds, routeKind(kind))
		}
		return nil
	}
	var f *fault
	for i, kind := range l.spec.AllowedRoutes.Kinds {
		if value(kind.Group, group) == group && slices.Contains(supported, Kind(kind.Kind)) {
			l.Kinds = append(l.Kinds, routeKind(Kind(kind.Kind)))
			continue
		}
		if f == nil {
			f = faultf(gatewayv1.ListenerReasonInvalidRouteKinds, "allowedRoutes.kinds[%d]: %s routes cannot attach to a listener of protocol %s", i, kind.Kind, l.Protocol)
		}
	}
	return f
}

func routeKind(kind Kind) gatewayv1.RouteGroupKind {
	of := gatewayv1.Group(group)
	return gatewayv1.RouteGroupKind{Group: &of, Kind: gatewayv1.Kind(kind)}
}

// allowNamespaces notes of which namespaces routes are allowed.
func (l *Listener) allowNamespaces(known Input) *fault {
	l.from = gatewayv1.NamespacesFromSame
	if l.spec.AllowedRoutes == nil || l.spec.AllowedRoutes.Namespaces == nil {
		return nil
	}
	in := l.spec.AllowedRoutes.Namespaces
	l.from = value(in.From, gatewayv1.NamespacesFromSame)
	switch l.from {
	case gatewayv1.NamespacesFromSame, gatewayv1.NamespacesFromAll:
		return nil
	case gatewayv1.NamespacesFromSelector:
		if in.Selector == nil {
			l.selector = labels.Nothing()
			return faultf(gatewayv1.ListenerReasonUnsupportedValue, "allowedRoutes.namespaces.selector: it is missing, so no namespace is selected")
		}
		selector, err := known.selects(in.Selector)
		if err != nil {
			l.selector = labels.Nothing()
			return faultf(gatewayv1.ListenerReasonUnsupportedValue, "allowedRoutes.namespaces.selector: %v", err)
		}
		l.selector = selector
		return nil
	default:
		l.selector = labels.Nothing()
		return faultf(gatewayv1.ListenerReasonUnsupportedValue, "allowedRoutes.namespaces.from: %q is not supported", l.from)
	}
}

// certificates notes the certificates that can be used. It returns the first fault of one that
// cannot.
func (b *builder) certificates(l *Listener) *fault {
	var first *fault
	for i, ref := range l.spec.TLS.CertificateRefs {
		name, f := b.certificate(l.owner, fmt.Sprintf("tls.certificateRefs[%d]", i), ref)
		switch {
		case f == nil && !slices.Contains(l.Certificates, name):
			l.Certificates = append(l.Certificates, name)
		case f != nil && first == nil:
			first = f
		}
	}
	if len(l.spec.TLS.CertificateRefs) == 0 {
		return faultf(gatewayv1.ListenerReasonInvalidCertificateRef, "tls.certificateRefs: there is none, so no client could be served")
	}
	return first
}

func (b *builder) certificate(of owner, field string, ref gatewayv1.SecretObjectReference) (types.NamespacedName, *fault) {
	own := of.namespace
	name, is := secretOf(ref, own)
	if !is {
		return name, faultf(gatewayv1.ListenerReasonInvalidCertificateRef, "%s: only Secrets are supported, not %s of group %q", field, value(ref.Kind, "Secret"), value(ref.Group, ""))
	}
	if b.in.unwatched(name.Namespace) {
		return name, faultf(gatewayv1.ListenerReasonInvalidCertificateRef, "%s: %s", field, elsewhere("Secret", name.Namespace, name.Name))
	}
	if !b.grants.permit(reference{fromGroup: group, fromKind: of.kind, fromNamespace: own, toKind: "Secret", to: name}) {
		return name, faultf(gatewayv1.ListenerReasonRefNotPermitted,
			"%s: no ReferenceGrant in namespace %q permits %ss of namespace %q to use Secret %q", field, name.Namespace, of.kind, own, name.Name)
	}
	secret, exists := b.in.Secrets[name]
	if !exists {
		return name, faultf(gatewayv1.ListenerReasonInvalidCertificateRef, "%s: Secret %q does not exist", field, nameFrom(own, name))
	}
	if secret.Problem != "" {
		return name, faultf(gatewayv1.ListenerReasonInvalidCertificateRef, "%s: Secret %q cannot be used: %s", field, nameFrom(own, name), secret.Problem)
	}
	return name, nil
}

// nameFrom is a name as somebody in a namespace would write it.
func nameFrom(namespace string, name types.NamespacedName) string {
	if name.Namespace == namespace {
		return name.Name
	}
	return name.String()
}

// conflictOf tells with which of the others a listener conflicts. All of them lose: which one is
// meant nobody knows.
func conflictOf(l *Listener, others []*Listener) *fault {
	if l.accepted != nil {
		return nil // it is not served anyway
	}
	for _, other := range others {
		switch {
		case other.Port != l.Port || other.accepted != nil || other.udp() != l.udp():
		case speech(other.Protocol) != speech(l.Protocol):
			return faultf(gatewayv1.ListenerReasonProtocolConflict, "port: listener %q speaks %s on port %d, so %s cannot be spoken there", other.Name, other.Protocol, l.Port, l.Protocol)
		case other.Hostname == l.Hostname:
			return faultf(gatewayv1.ListenerReasonHostnameConflict, "hostname: listener %q has the same port and hostname", other.Name)
		}
	}
	return nil
}

// conclude makes the conditions. other is a listener that it overlaps with, or nil.
func (l *Listener) conclude(other *Listener) {
	c, accepted := conditions{l.owner.generation}, l.conflict
	if accepted == nil {
		accepted = l.accepted
	}
	l.Conditions = []metav1.Condition{
		c.condition(string(gatewayv1.ListenerConditionAccepted), string(gatewayv1.ListenerReasonAccepted), "the listener can be served", accepted),
		c.condition(string(gatewayv1.ListenerConditionResolvedRefs), string(gatewayv1.ListenerReasonResolvedRefs), "everything that the listener refers to can be used", l.resolved),
	}
	if f := l.conflict; f != nil {
		l.Conditions = append(l.Conditions, c.yes(string(gatewayv1.ListenerConditionConflicted), f.reason, f.message))
	}
	if other != nil {
		l.Conditions = append(l.Conditions, c.yes(string(gatewayv1.ListenerConditionOverlappingTLSConfig), string(gatewayv1.ListenerReasonOverlappingHostnames),
			fmt.Sprintf("hostname: there are names that %s has as well", l.nameOf(other))))
	}
}

// value is what a pointer points to, or a default.
func value[T any](pointer *T, fallback T) T {
	if pointer == nil {
		return fallback
	}
	return *pointer
}
