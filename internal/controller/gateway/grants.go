package gateway

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gatewayapi/graph"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// confirmGrants returns an error while the cache does not show the grants of the namespaces of certificates as they are. The
// operator that led before may have seen more: what it took away must not come back, and what it gave must not be taken away.
// The grants of a namespace are compared once. What the cache shows later can only be newer.
func (r *Reconciler) confirmGrants(ctx context.Context, s *scope) error {
	if !r.kinds.hasGrants() {
		return nil
	}
	for _, name := range graph.Certificates(s.gateway) {
		if name.Namespace == s.gateway.Namespace || !r.kinds.objects.Watches(name.Namespace) {
			continue
		}
		if _, known := r.granted.Get(name.Namespace); known {
			continue
		}
		live, err := r.kinds.grants(ctx, r.kit.Live, client.InNamespace(name.Namespace))
		if err != nil {
			return outcome.Classify(fmt.Sprintf("the ReferenceGrants of namespace %q", name.Namespace), err)
		}
		if !maps.Equal(grantVersions(s.input.Grants, name.Namespace), grantVersions(live, name.Namespace)) {
			return outcome.StaleCache(fmt.Sprintf("the ReferenceGrants of namespace %q", name.Namespace))
		}
		r.granted.Add(name.Namespace, true)
	}
	return nil
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
