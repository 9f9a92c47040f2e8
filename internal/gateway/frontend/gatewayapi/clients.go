package gatewayapi

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Clients is how the clients of a listener prove with certificates who they are.
type Clients struct {
	// Bundles are the ConfigMaps with the authorities that are trusted.
	Bundles []types.NamespacedName
	// Optional lets clients in that show no certificate, or one that is not valid.
	Optional bool
}

// validation is what the Gateway says about clients of a port, and where. It is nil if they need not prove
// who they are.
func (b *builder) validation(port int32) (field string, found *gatewayv1.FrontendTLSValidation) {
	of := b.in.Gateway.Spec.TLS
	if of == nil || of.Frontend == nil {
		return "", nil
	}
	for i, only := range of.Frontend.PerPort {
		if only.Port == port {
			return fmt.Sprintf("spec.tls.frontend.perPort[%d].tls.validation", i), only.TLS.Validation
		}
	}
	return "spec.tls.frontend.default.validation", of.Frontend.Default.Validation
}

// checkClients notes how clients prove who they are. Where none of the authorities can be used, the listener
// is not served: nobody could be let in, and letting everybody in is not what was meant.
func (b *builder) checkClients(l *Listener) (accepted, resolved *fault) {
	field, in := b.validation(l.Port)
	if in == nil {
		return nil, nil
	}
	l.Clients = &Clients{Optional: in.Mode == gatewayv1.AllowInsecureFallback}
	if in.Mode != "" && in.Mode != gatewayv1.AllowValidOnly && !l.Clients.Optional {
		return faultf(gatewayv1.ListenerReasonUnsupportedValue, "%s.mode: %q is not supported", field, in.Mode), nil
	}
	for i, ref := range in.CACertificateRefs {
		name, f := b.clientAuthorities(fmt.Sprintf("%s.caCertificateRefs[%d]", field, i), ref)
		switch {
		case f == nil && !slices.Contains(l.Clients.Bundles, name):
			l.Clients.Bundles = append(l.Clients.Bundles, name)
		case f != nil && resolved == nil:
			resolved = f
		}
	}
	if len(l.Clients.Bundles) == 0 {
		message := field + ".caCertificateRefs: there is none, so no client could be let in"
		if resolved != nil {
			message = resolved.message
		}
		accepted = faultf(gatewayv1.ListenerReasonNoValidCACertificate, "%s", message)
	}
	return accepted, resolved
}

// clientAuthorities tells why a reference of the Gateway to certificates of authorities cannot be used.
func (b *builder) clientAuthorities(field string, ref gatewayv1.ObjectReference) (types.NamespacedName, *fault) {
	own := b.in.Gateway.Namespace
	name, is := configMapOf(ref, own)
	if !is {
		return name, faultf(gatewayv1.ListenerReasonInvalidCACertificateKind, "%s: only ConfigMaps are supported, not %s of group %q", field, ref.Kind, ref.Group)
	}
	if b.in.unwatched(name.Namespace) {
		return name, faultf(gatewayv1.ListenerReasonInvalidCACertificateRef, "%s: %s", field, elsewhere("ConfigMap", name.Namespace, name.Name))
	}
	if !b.grants.permit(reference{fromGroup: group, fromKind: "Gateway", fromNamespace: own, toKind: "ConfigMap", to: name}) {
		return name, faultf(gatewayv1.ListenerReasonRefNotPermitted,
			"%s: no ReferenceGrant in namespace %q permits Gateways of namespace %q to use ConfigMap %q", field, name.Namespace, own, name.Name)
	}
	bundle, exists := b.in.Bundles[name]
	if !exists {
		return name, faultf(gatewayv1.ListenerReasonInvalidCACertificateRef, "%s: ConfigMap %q does not exist", field, nameFrom(own, name))
	}
	if bundle.Problem != "" {
		return name, faultf(gatewayv1.ListenerReasonInvalidCACertificateRef, "%s: ConfigMap %q cannot be used: %s", field, nameFrom(own, name), bundle.Problem)
	}
	return name, nil
}

// showCertificate notes the certificate that backends are shown. It tells why that cannot be used; backends are
// then shown none.
func (b *builder) showCertificate(g *Graph) *fault {
	ref := clientCertificate(b.in.Gateway)
	if ref == nil {
		return nil
	}
	name, f := b.certificate(owner{kind: "Gateway", namespace: b.in.Gateway.Namespace}, "spec.tls.backend.clientCertificateRef", *ref)
	if f == nil {
		g.ClientCertificate = &name
		return nil
	}
	if f.reason == string(gatewayv1.ListenerReasonInvalidCertificateRef) {
		f.reason = string(gatewayv1.GatewayReasonInvalidClientCertificateRef)
	}
	return f
}

// insecure is a listener that lets clients in without a valid certificate though it asks for one.
func (g *Graph) insecure() *Listener {
	for _, l := range g.Listeners {
		if l.Clients != nil && l.Clients.Optional {
			return l
		}
	}
	return nil
}
