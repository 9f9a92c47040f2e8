package desired

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/dataplane"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
)

// ServiceAccount is who the gateway pods are.
func ServiceAccount(gateway *slipwayv1alpha1.APIGateway) *corev1ac.ServiceAccountApplyConfiguration {
	return dataplane.ServiceAccount(owner(gateway))
}

// Role is what the gateway pods may read: their own APIGateway, the Services and
// EndpointSlices of the namespace, and exactly the Secrets and ConfigMaps that the spec names.
func Role(gateway *slipwayv1alpha1.APIGateway) *rbacv1ac.RoleApplyConfiguration {
	rules := []*rbacv1ac.PolicyRuleApplyConfiguration{
		read(slipwayv1alpha1.GroupName, "apigateways").WithResourceNames(gateway.Name),
		read("", "services"),
		read("discovery.k8s.io", "endpointslices"),
	}
	// A rule without names would be one for every Secret.
	if secrets := Secrets(gateway); len(secrets) > 0 {
		rules = append(rules, read("", "secrets").WithResourceNames(secrets...))
	}
	if configMaps := ConfigMaps(gateway); len(configMaps) > 0 {
		rules = append(rules, read("", "configmaps").WithResourceNames(configMaps...))
	}
	return rbacv1ac.Role(Name(gateway), gateway.Namespace).
		WithLabels(Labels(gateway)).
		WithOwnerReferences(ownerReference(gateway)).
		WithRules(rules...)
}

func read(group, resource string) *rbacv1ac.PolicyRuleApplyConfiguration {
	return rbacv1ac.PolicyRule().WithAPIGroups(group).WithResources(resource).WithVerbs("get", "list", "watch")
}

// QuotaSecret is what the replicas know each other by, where they count requests together, and what makes the names of
// endpoints in cookies. It is made once.
func QuotaSecret(gateway *slipwayv1alpha1.APIGateway, key []byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(quota.SecretName(gateway.Name), gateway.Namespace).
		WithLabels(Labels(gateway)).
		WithOwnerReferences(ownerReference(gateway)).
		WithType(corev1.SecretTypeOpaque).
		WithData(map[string][]byte{quota.SecretKey: key})
}

// RoleBinding gives the pods the Role.
func RoleBinding(gateway *slipwayv1alpha1.APIGateway) *rbacv1ac.RoleBindingApplyConfiguration {
	return rbacv1ac.RoleBinding(Name(gateway), gateway.Namespace).
		WithLabels(Labels(gateway)).
		WithOwnerReferences(ownerReference(gateway)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(Name(gateway))).
		WithSubjects(rbacv1ac.Subject().
			WithKind(rbacv1.ServiceAccountKind).
			WithName(Name(gateway)).
			WithNamespace(gateway.Namespace))
}
