package apigateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// indexClaim finds APIGateways by a host at the place where it is exposed.
const indexClaim = "slipway.dev/claim"

// place is where a gateway is exposed together with others, or empty where it is alone:
// behind a Service of its own. Ingresses of a class are one place in the whole cluster,
// and so are the HTTPRoutes of a listener. An Ingress of the default class that does not
// name it is at the place of those without a name.
func place(gateway *slipwayv1alpha1.APIGateway) string {
	expose := gateway.Spec.Expose
	switch desired.ExposeType(gateway) {
	case slipwayv1alpha1.ExposeIngress:
		if expose == nil || expose.IngressClassName == nil {
			return "Ingress"
		}
		return "Ingress/" + *expose.IngressClassName
	case slipwayv1alpha1.ExposeHTTPRoute:
		parent := expose.Gateway
		if parent == nil {
			return ""
		}
		return strings.Join([]string{"HTTPRoute", cmp.Or(parent.Namespace, gateway.Namespace), parent.Name, parent.SectionName}, "/")
	case slipwayv1alpha1.ExposeNodePort, slipwayv1alpha1.ExposeLoadBalancer, slipwayv1alpha1.ExposeClusterIP:
	}
	return ""
}

// claim is a host at a place. The path is no part of it: an Ingress and an HTTPRoute send
// a host as a whole to one gateway, and to the one that was there first.
func claim(place, host string) string { return place + " " + host }

// claims are all of a gateway.
func claims(gateway *slipwayv1alpha1.APIGateway) []string {
	at := place(gateway)
	if at == "" {
		return nil
	}
	hosts := desired.Hosts(gateway)
	list := make([]string, len(hosts))
	for i, host := range hosts {
		list[i] = claim(at, host)
	}
	return list
}

func claimIndex(object client.Object) []string {
	gateway, ok := object.(*slipwayv1alpha1.APIGateway)
	if !ok {
		return nil
	}
	return claims(gateway)
}

// older tells which of two gateways a host belongs to: the one that was made first.
func older(a, b *slipwayv1alpha1.APIGateway) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name)) < 0
}

// findConflicts returns the hosts of a gateway that belong to an older one, and to which.
func (r *Reconciler) findConflicts(ctx context.Context, gateway *slipwayv1alpha1.APIGateway) (map[string]types.NamespacedName, error) {
	at := place(gateway)
	if at == "" {
		return nil, nil
	}
	conflicts := map[string]types.NamespacedName{}
	for _, host := range desired.Hosts(gateway) {
		others, err := claimants(ctx, r.kit.Client, claim(at, host))
		if err != nil {
			return nil, err
		}
		owner := gateway
		for i := range others {
			if other := &others[i]; other.DeletionTimestamp.IsZero() && older(other, owner) {
				owner = other
			}
		}
		if owner != gateway {
			conflicts[host] = client.ObjectKeyFromObject(owner)
		}
	}
	return conflicts, nil
}

// claimants are the APIGateways with a claim, shared with the cache.
func claimants(ctx context.Context, reader client.Reader, claim string) ([]slipwayv1alpha1.APIGateway, error) {
	list := &slipwayv1alpha1.APIGatewayList{}
	err := reader.List(ctx, list, client.MatchingFields{indexClaim: claim},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("list APIGateways by claim: %w", err)
	}
	return list.Items, nil
}

// rivals maps an APIGateway to the others that have a claim of it.
func rivals(reader client.Reader) handler.MapFunc {
	claimants := watch.Referrers{Reader: reader, List: &slipwayv1alpha1.APIGatewayList{}, Index: indexClaim, Values: claimIndex}
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		return slices.DeleteFunc(claimants.Map(ctx, object), func(request reconcile.Request) bool {
			return request.NamespacedName == client.ObjectKeyFromObject(object)
		})
	}
}
