package gateway

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/keep"
	"github.com/slipway-dev/slipway/internal/kit/optional"
)

// NewBudget is the budget of the Gateway API. Nothing but the classes is kept before there is one of ours. limited reports whether
// there are no rights outside of the namespaces.
func NewBudget(namespaces map[string]cache.Config, limited bool) Budget {
	whole := cache.ByObject{Transform: cache.TransformStripManagedFields()}
	budget := Budget{
		// Every class, of which a cluster has few: which ones are ours.
		Classes: optional.Budget{ByObject: map[client.Object]cache.ByObject{&gatewayv1.GatewayClass{}: whole}},
		Objects: optional.Budget{
			Namespaces: namespaces,
			ByObject: map[client.Object]cache.ByObject{
				// Every Gateway: which ones are ours changes with their classes.
				&gatewayv1.Gateway{}: whole,
				// Every route, as it is: its parents decide whether it matters, and entries of others in its status are
				// written back with ours.
				&gatewayv1.HTTPRoute{}: whole,
				&gatewayv1.GRPCRoute{}: whole,
				&gatewayv1.TLSRoute{}:  whole,
				&gatewayv1.TCPRoute{}:  whole,
				&gatewayv1.UDPRoute{}:  whole,
				// Every grant, of which a cluster has few: which references to other namespaces are permitted.
				&gatewayv1.ReferenceGrant{}:      whole,
				&gatewayv1beta1.ReferenceGrant{}: whole, // only where the cluster does not have the other
				// Every policy, of which a cluster has few: entries of others in its status are written back with ours.
				&gatewayv1.BackendTLSPolicy{}:    whole,
				&slipwayv1alpha1.GatewayPolicy{}: whole,
				// Every set of listeners: the Gateway that it names decides whether it matters. What we state of its status
				// is what we take away.
				&gatewayv1.ListenerSet{}: {Transform: keep.OwnManagedFields},
				// Every Service, by name, type and ports: whether what a route names exists.
				&corev1.Service{}: {Transform: keepPorts},
			},
		},
	}
	if limited {
		// One object in each namespace: which pods may read the Gateway API there.
		budget.Objects.ByObject[&rbacv1.RoleBinding{}] = cache.ByObject{
			Field:     fields.OneTermEqualSelector("metadata.name", desired.LimitedRightsName),
			Transform: cache.TransformStripManagedFields(),
		}
		return budget
	}
	// Every namespace, as metadata: the labels, by which listeners select.
	budget.Objects.ByObject[Namespace()] = cache.ByObject{Transform: keep.Labels}
	return budget
}

// keepPorts keeps name, type and ports of a Service.
func keepPorts(object any) (any, error) {
	service, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	kept := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service.Name, Namespace: service.Namespace, UID: service.UID, ResourceVersion: service.ResourceVersion},
		Spec:       corev1.ServiceSpec{Type: service.Spec.Type},
	}
	for _, port := range service.Spec.Ports {
		kept.Spec.Ports = append(kept.Spec.Ports, corev1.ServicePort{Name: port.Name, Port: port.Port, Protocol: port.Protocol, AppProtocol: port.AppProtocol})
	}
	return kept, nil
}
