package apigateway

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/kit/keep"
	"github.com/slipway-dev/slipway/internal/kit/optional"
)

// ExposureBudget is the budget of the kinds by which an APIGateway may be exposed, which a cluster need not have.
func ExposureBudget(namespaces map[string]cache.Config) optional.Budget {
	return optional.Budget{
		Namespaces: namespaces,
		ByObject: map[client.Object]cache.ByObject{
			// Children: only Slipway's own.
			&gatewayv1.HTTPRoute{}: {Label: keep.Ours(), Transform: keep.OwnManagedFields},
			// Every Gateway, of which a cluster has few: the addresses that status tells.
			&gatewayv1.Gateway{}: {Transform: keepAddresses},
		},
	}
}

// keepAddresses keeps a Gateway's identity and addresses.
func keepAddresses(object any) (any, error) {
	gateway, ok := object.(*gatewayv1.Gateway)
	if !ok {
		return object, nil
	}
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{
			Name: gateway.Name, Namespace: gateway.Namespace, UID: gateway.UID, ResourceVersion: gateway.ResourceVersion,
		},
		Status: gatewayv1.GatewayStatus{Addresses: gateway.Status.Addresses},
	}, nil
}
