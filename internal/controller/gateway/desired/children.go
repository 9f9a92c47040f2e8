package desired

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/kit/children"
	"github.com/slipway-dev/slipway/internal/kit/children/dataplane"
)

// many stands for any number of pods: whoever scales the Deployment needs the budget.
const many = 2

// Deployment runs the pods of the Gateway. They open the ports of the listeners themselves, so another listener restarts none.
// Their number is not stated: it is one, until somebody scales the Deployment.
func Deployment(in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	return dataplane.Deployment(dataplane.Pods{
		Owner:        owner(in.Gateway),
		Image:        in.Image,
		Serve:        []string{"--kind=" + Kind, "--gateway=" + in.Gateway.Name, "--borrowed-certificates=" + CopiesName(in.Gateway)},
		AdminPort:    AdminPort,
		LowPorts:     true,
		DrainSeconds: dataplane.DefaultDrainSeconds,
		Current:      in.Current,
	})
}

// ServiceAccount is who the pods are.
func ServiceAccount(in Inputs) *corev1ac.ServiceAccountApplyConfiguration {
	return dataplane.ServiceAccount(owner(in.Gateway))
}

// PodDisruptionBudget lets a node drain take one pod at a time, and an only pod too.
func PodDisruptionBudget(in Inputs) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return owner(in.Gateway).PodDisruptionBudget(many)
}

// Service has a port for each port of a valid listener. It returns nil without one: a Service needs a port.
func Service(in Inputs) *corev1ac.ServiceApplyConfiguration {
	numbers, protocols := ports(in.Listeners)
	if len(numbers) == 0 {
		return nil
	}
	spec := corev1ac.ServiceSpec().WithType(in.ServiceType).WithSelector(owner(in.Gateway).Selector())
	for _, number := range numbers {
		spec.WithPorts(corev1ac.ServicePort().
			WithName(fmt.Sprintf("%s-%d", strings.ToLower(string(protocols[number])), number)).
			WithPort(number).
			WithTargetPort(intstr.FromInt32(number)).
			WithProtocol(corev1.ProtocolTCP))
	}
	if asked := RequestedAddresses(in.Gateway); len(asked) > 0 {
		if in.ServiceType == corev1.ServiceTypeLoadBalancer {
			spec.WithLoadBalancerIP(asked[0])
		} else {
			spec.WithClusterIP(asked[0])
		}
	}
	o := owner(in.Gateway)
	return corev1ac.Service(o.Name(), in.Gateway.Namespace).
		WithLabels(o.Labels()).
		WithAnnotations(o.Annotations).
		WithOwnerReferences(o.Reference()).
		WithSpec(spec)
}

// RequestedAddresses are those of the spec that have a value. A Service can ask for one.
func RequestedAddresses(gateway *gatewayv1.Gateway) []string {
	var asked []string
	for _, address := range gateway.Spec.Addresses {
		if address.Value != "" && children.Or(address.Type, gatewayv1.IPAddressType) == gatewayv1.IPAddressType {
			asked = append(asked, address.Value)
		}
	}
	return asked
}

// Role lets the pods read the Secrets that the listeners show, and the one with the copies of those of other namespaces.
func Role(in Inputs) *rbacv1ac.RoleApplyConfiguration {
	o := owner(in.Gateway)
	names := append(Secrets(in.Gateway, in.Certificates), CopiesName(in.Gateway))
	return rbacv1ac.Role(o.Name(), in.Gateway.Namespace).
		WithLabels(o.Labels()).
		WithAnnotations(o.Annotations).
		WithOwnerReferences(o.Reference()).
		WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("secrets").WithResourceNames(names...).WithVerbs("get", "list", "watch"))
}

// RoleBinding gives the pods the Role.
func RoleBinding(in Inputs) *rbacv1ac.RoleBindingApplyConfiguration {
	o := owner(in.Gateway)
	return rbacv1ac.RoleBinding(o.Name(), in.Gateway.Namespace).
		WithLabels(o.Labels()).
		WithAnnotations(o.Annotations).
		WithOwnerReferences(o.Reference()).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(o.Name())).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(o.Name()).WithNamespace(in.Gateway.Namespace))
}

// Copies is the Secret with the certificates of other namespaces. data is made by package borrowed.
func Copies(gateway *gatewayv1.Gateway, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	o := owner(gateway)
	return corev1ac.Secret(CopiesName(gateway), gateway.Namespace).
		WithLabels(o.Labels()).
		WithAnnotations(o.Annotations).
		WithOwnerReferences(o.Reference()).
		WithType(corev1.SecretTypeOpaque).
		WithData(data)
}
