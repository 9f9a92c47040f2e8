package gatewayapi

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// backend is a backendRef of a rule.
type backend struct {
	field  string
	ref    gatewayv1.BackendObjectReference
	weight int32
	// actions are what happens with the requests that go there, besides what happens with all of the
	// rule.
	actions
	// grpc tells that it speaks HTTP/2 where its Service does not say.
	grpc bool
}

// filters adds the filters of a rule.
func (r *rule) filters(all []filter) {
	for i, f := range all {
		r.refuse(r.add(fmt.Sprintf("%s.filters[%d]", r.field, i), f))
	}
}

// backend adds the i-th backendRef with its filters.
func (r *rule) backend(i int, ref gatewayv1.BackendRef, filters []filter) {
	b := backend{field: fmt.Sprintf("%s.backendRefs[%d]", r.field, i), ref: ref.BackendObjectReference, weight: value(ref.Weight, 1)}
	if b.weight < 0 {
		r.refuse(unsupportedf("%s.weight: it is negative", b.field))
	}
	for k, f := range filters {
		in := fmt.Sprintf("%s.filters[%d]", b.field, k)
		switch gatewayv1.HTTPRouteFilterType(f.kind) {
		case gatewayv1.HTTPRouteFilterRequestRedirect, gatewayv1.HTTPRouteFilterCORS:
			r.refuse(unsupportedf("%s.type: %s is for whole rules", in, f.kind))
		default:
			r.refuse(b.add(in, f))
		}
	}
	r.backends = append(r.backends, b)
}

// judge checks the rules of a route, and resolves what they refer to.
func (b *builder) judge(route *Route) {
	for i := range route.rules {
		r := &route.rules[i]
		r.action.RequestHeaders, r.action.ResponseHeaders = r.requestHeaders, r.responseHeaders
		r.action.Rewrite, r.action.Redirect, r.action.CORS = r.rewrite, r.redirect, r.cors
		for k := range r.backends {
			to := &r.backends[k]
			made, f := b.resolve(route, to.field, to.ref, to.grpc)
			r.lack(f)
			made.Weight = uint32(max(to.weight, 0))
			made.RequestHeaders, made.ResponseHeaders, made.Rewrite = to.requestHeaders, to.responseHeaders, to.rewrite
			made.Mirrors = b.mirrors(route, r, to.mirrors)
			r.action.Backends = append(r.action.Backends, made)
			if route.Kind == TLSRoute {
				r.ended = append(r.ended, b.ended(made))
			}
		}
		r.action.Mirrors = b.mirrors(route, r, r.mirrors)
		r.action.Owner = route.Name.Namespace
		r.check(b.checker)
	}
}

// lack notes the first reference that cannot be used.
func (r *rule) lack(f *fault) {
	if f != nil && r.unresolved == nil {
		r.unresolved = f
	}
}

// mirrors resolves backends that get copies. Nobody waits for a copy, so one that cannot be used is only
// told.
func (b *builder) mirrors(route *Route, r *rule, in []mirror) []model.MirrorRef {
	var made []model.MirrorRef
	for _, to := range in {
		ref, f := b.resolve(route, to.field, to.ref, false)
		r.lack(f)
		if f != nil || ref.Fault != nil {
			continue
		}
		made = append(made, model.MirrorRef{
			Namespace: ref.Namespace, Service: ref.Service, Port: ref.Port, Field: ref.Field,
			Numerator: uint32(to.numerator), Denominator: uint32(to.denominator),
		})
	}
	return made
}

// resolve finds the Service that a reference names. One that cannot be used keeps its share of
// the requests: the others were not meant for them.
func (b *builder) resolve(route *Route, field string, ref gatewayv1.BackendObjectReference, grpc bool) (model.BackendRef, *fault) {
	name, is := serviceOf(ref, route.Name.Namespace)
	made := model.BackendRef{Namespace: name.Namespace, Service: name.Name, Port: value(ref.Port, 0), Field: field}
	if is && !slices.Contains(route.services, name) && b.mayUse(route, name) {
		route.services = append(route.services, name)
	}
	if f := b.usable(route, ref, name); f != nil {
		made.Fault = &model.Fault{Reason: f.reason, Message: f.message}
		return made, &fault{reason: f.reason, message: field + ": " + f.message}
	}
	if route.Kind == TLSRoute || route.Kind == UDPRoute {
		return made, nil // a TLSRoute: see ended
	}
	if f := b.secure(name, made.Port, route.transport()); f != nil {
		// The reference can be resolved. What is wrong is told in the status of the policy.
		made.Fault = &model.Fault{Reason: f.reason, Message: f.message}
		return made, nil
	}
	if grpc && b.in.Services[name].Ports[made.Port].AppProtocol == "" {
		protocol := model.ProtocolGRPC
		b.settings[model.BackendName{ServiceName: model.ServiceName(name), Port: made.Port}] = model.Settings{Protocol: &protocol}
	}
	return made, nil
}

// withoutPolicy says what is missing where a port speaks TLS and nobody says whom to trust.
func withoutPolicy(appProtocol string, secure bool) string {
	if !secure && table.Speaks(appProtocol, true) {
		return " without a BackendTLSPolicy"
	}
	return ""
}

// mayUse reports whether a route may refer to a Service.
func (b *builder) mayUse(route *Route, name types.NamespacedName) bool {
	return b.grants.permit(reference{fromGroup: group, fromKind: string(route.Kind), fromNamespace: route.Name.Namespace, toKind: "Service", to: name})
}

// usable tells why a reference to a Service cannot be used.
func (b *builder) usable(route *Route, ref gatewayv1.BackendObjectReference, name types.NamespacedName) *fault {
	if _, is := serviceOf(ref, route.Name.Namespace); !is {
		return faultf(gatewayv1.RouteReasonInvalidKind, "only Services are supported, not %s of group %q", value(ref.Kind, "Service"), value(ref.Group, ""))
	}
	if b.in.unwatched(name.Namespace) {
		return faultf(gatewayv1.RouteReasonBackendNotFound, "%s", elsewhere("Service", name.Namespace, name.Name))
	}
	own := route.Name.Namespace
	if !b.mayUse(route, name) {
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
	port, exists := service.Ports[*ref.Port]
	if route.Kind == UDPRoute {
		port, exists = service.UDP[*ref.Port]
	}
	if !exists {
		return faultf(gatewayv1.RouteReasonBackendNotFound, "Service %q has no port %d%s", nameFrom(own, name), *ref.Port, overUDP(route.Kind))
	}
	if route.transport() != model.TransportHTTP {
		return b.usableByStreams(route, name, port)
	}
	secure := b.policyFor(name, port.Name) != nil
	if !table.Speaks(port.AppProtocol, secure) {
		return faultf(gatewayv1.RouteReasonUnsupportedProtocol, "port %d of Service %q has appProtocol %q, which is not supported%s",
			*ref.Port, nameFrom(own, name), port.AppProtocol, withoutPolicy(port.AppProtocol, secure))
	}
	return nil
}
