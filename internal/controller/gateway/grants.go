package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// confirmGrants returns an error while the cache does not show the grants of the namespaces of certificates as they are. The
// operator that led before may have seen more: what it took away must not come back, and what it gave must not be taken away.
// The grants of a namespace are compared once. What the cache shows later can only be newer.
func (r *Reconciler) confirmGrants(ctx context.Context, s *scope) error {
	if !r.kinds.hasGrants() {
		return nil
	}
	for _, namespace := range s.granting() {
		if !r.kinds.objects.Watches(namespace) {
			continue
		}
		if _, known := r.granted.Get(namespace); known {
			continue
		}
		live, err := r.kinds.grants(ctx, r.kit.Live, client.InNamespace(namespace))
		if err != nil {
			return outcome.Classify(fmt.Sprintf("the ReferenceGrants of namespace %q", namespace), err)
		}
		if !maps.Equal(grantVersions(s.input.Grants, namespace), grantVersions(live, namespace)) {
			return outcome.StaleCache(fmt.Sprintf("the ReferenceGrants of namespace %q", namespace))
		}
		r.granted.Add(namespace, true)
	}
	return nil
}

// granting are the namespaces whose grants decide about certificates, of the Gateway and of the sets that it allows.
func (s *scope) granting() []string {
	var namespaces []string
	add := func(names []types.NamespacedName, from string) {
		for _, name := range names {
			if name.Namespace != from && !slices.Contains(namespaces, name.Namespace) {
				namespaces = append(namespaces, name.Namespace)
			}
		}
	}
	add(gatewayapi.Certificates(s.gateway), s.gateway.Namespace)
	for _, set := range gatewayapi.AllowedSets(s.input) {
		add(gatewayapi.CertificatesOfSet(set), set.Namespace)
	}
	return namespaces
}

// grantVersions are the versions of the grants of a namespace.
func grantVersions(grants []*gatewayv1.ReferenceGrant, namespace string) map[types.UID]string {
	versions := map[types.UID]string{}
	for _, grant := range grants {
		if grant.Namespace == namespace {
			versions[grant.UID] = grant.ResourceVersion
		}
	}
	return versions
}

func pointers[T any](items []T) []*T {
	list := make([]*T, 0, len(items))
	for i := range items {
		list = append(list, &items[i])
	}
	return list
}
