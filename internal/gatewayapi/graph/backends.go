package graph

import (
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// backend is a backendRef of a rule.
type backend struct {
	field  string
	ref    gatewayv1.BackendObjectReference
	weight int32
	// grpc tells that it speaks HTTP/2 where its Service does not say.
	grpc bool
}

// mirror is a backend that gets copies: numerator of denominator requests.
type mirror struct {
	field                  string
	ref                    gatewayv1.BackendObjectReference
	numerator, denominator int32
}

// backend adds a backendRef with its filters.
func (r *rule) backend(field string, ref gatewayv1.BackendRef, filters []filter) {
	b := backend{field: field, ref: ref.BackendObjectReference, weight: value(ref.Weight, 1)}
	if b.weight < 0 {
		r.refuse(unsupportedf("%s.weight: it is negative", field))
	}
	if len(filters) > 0 {
		r.refuse(unsupportedf("%s.filters: filters of a backendRef are not supported", field))
	}
	r.backends = append(r.backends, b)
}

// judge checks the rules of a route, and resolves what they refer to.
func (b *builder) judge(route *Route) {
	for i := range route.rules {
		r := &route.rules[i]
		r.check()
		for _, to := range r.backends {
			made, f := b.resolve(route, to.field, to.ref, to.grpc)
			if f != nil && r.unresolved == nil {
				r.unresolved = f
			}
			made.Weight = uint32(max(to.weight, 0))
			r.action.Backends = append(r.action.Backends, made)
		}
		for _, to := range r.mirrors {
			made, f := b.resolve(route, to.field, to.ref, false)
			if f != nil {
				if r.unresolved == nil {
					r.unresolved = f
				}
				continue // nobody waits for a copy
			}
			r.action.Mirrors = append(r.action.Mirrors, table.MirrorRef{BackendRef: made, Numerator: uint32(to.numerator), Denominator: uint32(to.denominator)})
		}
	}
}

// resolve finds the Service that a reference names. One that cannot be used keeps its share of
// the requests: the others were not meant for them.
func (b *builder) resolve(route *Route, field string, ref gatewayv1.BackendObjectReference, grpc bool) (table.BackendRef, *fault) {
	name := types.NamespacedName{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(route.Name.Namespace))), Name: string(ref.Name)}
	made := table.BackendRef{Namespace: name.Namespace, Service: name.Name, Port: value(ref.Port, 0), Field: field}
	if f := b.usable(route, ref, name); f != nil {
		made.Fault = &table.Fault{Reason: f.reason, Message: f.message}
		return made, &fault{reason: f.reason, message: field + ": " + f.message}
	}
	if grpc && b.in.Services[name].Ports[made.Port] == "" {
		protocol := table.ProtocolGRPC
		b.settings[table.BackendName{ServiceName: table.ServiceName(name), Port: made.Port}] = table.Settings{Protocol: &protocol}
	}
	return made, nil
}

// usable tells why a reference to a Service cannot be used.
func (b *builder) usable(route *Route, ref gatewayv1.BackendObjectReference, name types.NamespacedName) *fault {
	of, kind := value(ref.Group, ""), value(ref.Kind, "Service")
	if of != "" || kind != "Service" {
		return faultf(gatewayv1.RouteReasonInvalidKind, "only Services are supported, not %s of group %q", kind, of)
	}
	own := route.Name.Namespace
	if !b.grants.permit(reference{fromGroup: group, fromKind: string(route.Kind), fromNamespace: own, toKind: "Service", to: name}) {
		return faultf(gatewayv1.RouteReasonRefNotPermitted,
			"no ReferenceGrant in namespace %q permits %ss of namespace %q to use Service %q", name.Namespace, route.Kind, own, name.Name)
	}
	service, exists := b.in.Services[name]
	if !exists {
		return faultf(gatewayv1.RouteReasonBackendNotFound, "Service %q does not exist", nameFrom(own, name))
	}
	if service.External {
		return faultf(gatewayv1.RouteReasonUnsupportedProtocol, "Service %q is of type ExternalName, which is not followed", nameFrom(own, name))
	}
	if ref.Port == nil {
		return faultf(gatewayv1.RouteReasonInvalidKind, "port: it is missing")
	}
	appProtocol, exists := service.Ports[*ref.Port]
	if !exists {
		return faultf(gatewayv1.RouteReasonBackendNotFound, "Service %q has no port %d", nameFrom(own, name), *ref.Port)
	}
	if !table.Speaks(appProtocol) {
		return faultf(gatewayv1.RouteReasonUnsupportedProtocol, "port %d of Service %q has appProtocol %q, which is not supported", *ref.Port, nameFrom(own, name), appProtocol)
	}
	return nil
}
