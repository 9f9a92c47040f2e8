package desired

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/controller/dataplane"
)

// many stands for any number of pods: whoever scales the Deployment needs the budget.
const many = 2

// Deployment runs the pods of the Gateway. They open the ports of the listeners themselves, so another listener restarts none.
// Their number is not stated unless the parameters do: it is one, until somebody scales the Deployment.
func Deployment(in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	serve := []string{"--kind=" + Kind, "--gateway=" + in.Gateway.Name, "--borrowed-certificates=" + CopiesName(in.Gateway)}
	if len(in.Namespaces) > 0 {
		serve = append(serve, "--namespaces="+strings.Join(in.Namespaces, ","))
	}
	return dataplane.Deployment(dataplane.Pods{
		Owner:        owner(in.Gateway),
		Image:        in.Image,
		Serve:        append(serve, Settings(in.Parameters).Arguments()...),
		AdminPort:    AdminPort,
		LowPorts:     true,
		DrainSeconds: children.Or(in.Parameters.DrainSeconds, dataplane.DefaultDrainSeconds),
		Resources:    in.Parameters.Resources,
		PullSecrets:  in.Parameters.ImagePullSecrets,
		Current:      in.Current,
		Replicas:     in.Replicas,
	}).WithAnnotations(asked(in.Parameters))
}

// Replicas states a Deployment's number of pods and nothing else.
func Replicas(gateway *gatewayv1.Gateway, replicas int32) *appsv1ac.DeploymentApplyConfiguration {
	return owner(gateway).Replicas(replicas)
}

// MinReplicas is the number of pods that should run at the least where the parameters state one.
func MinReplicas(parameters slipwayv1alpha1.GatewayParametersSpec) int32 {
	return children.MinReplicas(parameters.Replicas, parameters.Autoscaling)
}

// HorizontalPodAutoscaler owns the Deployment's replicas. It returns nil without autoscaling.
func HorizontalPodAutoscaler(in Inputs) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	return owner(in.Gateway).HorizontalPodAutoscaler(in.Parameters.Autoscaling, MinReplicas(in.Parameters))
}

// ServiceAccount is who the pods are.
func ServiceAccount(in Inputs) *corev1ac.ServiceAccountApplyConfiguration {
	return dataplane.ServiceAccount(owner(in.Gateway))
}

// PodDisruptionBudget lets a node drain take one pod at a time, and an only pod too. It returns nil where there are never two.
func PodDisruptionBudget(in Inputs) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	if in.Parameters.Replicas == nil && in.Parameters.Autoscaling == nil {
		return owner(in.Gateway).PodDisruptionBudget(many)
	}
	return owner(in.Gateway).PodDisruptionBudget(children.MaxReplicas(in.Parameters.Replicas, in.Parameters.Autoscaling))
}

// Service has a port for each port of a valid listener. It returns nil without one: a Service needs a port.
func Service(in Inputs) *corev1ac.ServiceApplyConfiguration {
	all, protocols := ports(in.Listeners)
	if len(all) == 0 {
		return nil
	}
	asks, kind := children.Or(in.Parameters.Service, slipwayv1alpha1.GatewayService{}), in.serviceType()
	spec := corev1ac.ServiceSpec().WithType(kind).WithSelector(owner(in.Gateway).Selector())
	if kind == corev1.ServiceTypeLoadBalancer && asks.LoadBalancerClass != nil {
		spec.WithLoadBalancerClass(*asks.LoadBalancerClass)
	}
	if kind != corev1.ServiceTypeClusterIP && asks.ExternalTrafficPolicy != "" {
		spec.WithExternalTrafficPolicy(asks.ExternalTrafficPolicy)
	}
	for _, at := range all {
		spec.WithPorts(corev1ac.ServicePort().
			WithName(fmt.Sprintf("%s-%d", strings.ToLower(string(protocols[at])), at.number)).
			WithPort(at.number).
			WithTargetPort(intstr.FromInt32(at.number)).
			WithProtocol(at.transport))
	}
	if asked := RequestedAddresses(in.Gateway); len(asked) > 0 {
		if kind == corev1.ServiceTypeLoadBalancer {
			spec.WithLoadBalancerIP(asked[0])
		} else {
			spec.WithClusterIP(asked[0])
		}
	}
	o := owner(in.Gateway)
	return corev1ac.Service(o.Name(), in.Gateway.Namespace).
		WithLabels(o.Labels()).
		WithAnnotations(o.Annotations).
		WithAnnotations(asks.Annotations).
		WithOwnerReferences(o.Reference()).
		WithSpec(spec)
}

// serviceType is that of the Service.
func (in Inputs) serviceType() corev1.ServiceType {
	if asks := in.Parameters.Service; asks != nil && asks.Type != "" {
		return corev1.ServiceType(asks.Type)
	}
	return in.ServiceType
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
	names := append(Secrets(in.Gateway, in.Secrets), CopiesName(in.Gateway))
	return rbacv1ac.Role(o.Name(), in.Gateway.Namespace).
		WithLabels(o.Labels()).
		WithAnnotations(o.Annotations).
		WithOwnerReferences(o.Reference()).
		WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("secrets").WithResourceNames(names...).
			WithVerbs("get", "list", "watch"))
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

// Copies is the Secret with the certificates of other namespaces. data is made by package copied.
func Copies(gateway *gatewayv1.Gateway, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	o := owner(gateway)
	return corev1ac.Secret(CopiesName(gateway), gateway.Namespace).
		WithLabels(o.Labels()).
		WithAnnotations(o.Annotations).
		WithOwnerReferences(o.Reference()).
		WithType(corev1.SecretTypeOpaque).
		WithData(data)
}
