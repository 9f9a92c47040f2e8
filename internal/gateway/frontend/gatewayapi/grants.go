package gatewayapi

import (
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// reference is who refers to what. A ReferenceGrant permits it from another namespace.
type reference struct {
	fromGroup     string
	fromKind      string
	fromNamespace string
	toGroup       string
	toKind        string
	to            types.NamespacedName
}

// grants are ReferenceGrants by the namespace that they are in: only one in the namespace of the
// target counts.
type grants map[string][]*gatewayv1.ReferenceGrant

func newGrants(all []*gatewayv1.ReferenceGrant) grants {
	by := grants{}
	for _, grant := range all {
		by[grant.Namespace] = append(by[grant.Namespace], grant)
	}
	return by
}

// Permitted reports whether grants let an object of a kind of the Gateway API, in a namespace, refer to a Secret, a Service or
// a ConfigMap.
func Permitted(all []*gatewayv1.ReferenceGrant, fromKind, fromNamespace, toKind string, to types.NamespacedName) bool {
	if fromNamespace == to.Namespace {
		return true
	}
	return newGrants(all).permit(reference{fromGroup: group, fromKind: fromKind, fromNamespace: fromNamespace, toKind: toKind, to: to})
}

// permit reports whether a reference is permitted. One within a namespace needs no grant.
func (g grants) permit(r reference) bool {
	if r.fromNamespace == r.to.Namespace {
		return true
	}
	for _, grant := range g[r.to.Namespace] {
		if grantsFrom(grant, r) && grantsTo(grant, r) {
			return true
		}
	}
	return false
}

func grantsFrom(grant *gatewayv1.ReferenceGrant, r reference) bool {
	for _, from := range grant.Spec.From {
		if string(from.Group) == r.fromGroup && string(from.Kind) == r.fromKind && string(from.Namespace) == r.fromNamespace {
			return true
		}
	}
	return false
}

// grantsTo takes an empty name like a missing one: the API server refuses it, and it names
// nothing.
func grantsTo(grant *gatewayv1.ReferenceGrant, r reference) bool {
	for _, to := range grant.Spec.To {
		if string(to.Group) == r.toGroup && string(to.Kind) == r.toKind && (to.Name == nil || *to.Name == "" || string(*to.Name) == r.to.Name) {
			return true
		}
	}
	return false
}
