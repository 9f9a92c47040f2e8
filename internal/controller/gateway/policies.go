package gateway

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// maxAncestors is how many entries the status of a policy holds.
const maxAncestors = 16

// ofPolicies are the types of the conditions in an entry of a policy that we state, or take away.
var ofPolicies = []string{string(gatewayv1.PolicyConditionAccepted), string(gatewayv1.BackendTLSPolicyConditionResolvedRefs)}

// policies are all BackendTLSPolicies. They are shared with the cache.
func (r *Reconciler) policies(ctx context.Context) ([]gatewayv1.BackendTLSPolicy, error) {
	list := &gatewayv1.BackendTLSPolicyList{}
	if err := r.kinds.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the BackendTLSPolicies: %w", err)
	}
	return list.Items, nil
}

// loadPolicies reads the BackendTLSPolicies for Services that routes name and may use, or that GatewayPolicies name. It comes after
// all of these, and after the grants.
func (r *Reconciler) loadPolicies(ctx context.Context, s *scope) error {
	list, err := r.policies(ctx)
	if err != nil {
		return err
	}
	named := s.usable()
	gateway := client.ObjectKeyFromObject(s.gateway)
	for i := range list {
		policy := &list[i]
		if slices.ContainsFunc(gatewayapi.ServicesOfPolicy(policy), func(name types.NamespacedName) bool { return named[name] }) {
			s.input.Policies = append(s.input.Policies, policy)
		} else if hasAncestor(policy, gateway) {
			s.unrelated = append(s.unrelated, policy)
		}
	}
	return nil
}

// usable are the Services that routes name and may use, and those of GatewayPolicies: who names one of another namespace must not have anything read there.
func (s *scope) usable() map[types.NamespacedName]bool {
	named := map[types.NamespacedName]bool{}
	for _, route := range s.routes {
		for _, name := range backendsOf(route) {
			if !named[name] && gatewayapi.Permitted(s.input.Grants, string(kindOf(route)), route.GetNamespace(), "Service", name) {
				named[name] = true
			}
		}
	}
	for _, policy := range s.input.GatewayPolicies {
		for _, name := range gatewayapi.ServicesOfGatewayPolicy(policy) {
			named[name] = true
		}
	}
	return named
}

// isAncestor reports whether an entry of a policy in a namespace is ours, and of a Gateway.
func isAncestor(entry *gatewayv1.PolicyAncestorStatus, namespace string, gateway types.NamespacedName) bool {
	name, is := gatewayapi.GatewayOf(entry.AncestorRef, namespace)
	return entry.ControllerName == Controller && is && name == gateway
}

func hasAncestor(policy *gatewayv1.BackendTLSPolicy, gateway types.NamespacedName) bool {
	return slices.ContainsFunc(policy.Status.Ancestors, func(entry gatewayv1.PolicyAncestorStatus) bool {
		return isAncestor(&entry, policy.Namespace, gateway)
	})
}

// ancestors returns the entries of a policy with what we say of a Gateway, in one entry. Those of other controllers and of other
// Gateways stay as they are, and where they are. No status: ours of that Gateway goes. ours are the types of the conditions that
// we state.
func ancestors(policy client.Object, are []gatewayv1.PolicyAncestorStatus, gateway types.NamespacedName, ours []string, stated []metav1.Condition, now metav1.Time) []gatewayv1.PolicyAncestorStatus {
	next := make([]gatewayv1.PolicyAncestorStatus, 0, len(are)+1)
	left := len(stated) > 0
	for _, entry := range are {
		if !isAncestor(&entry, policy.GetNamespace(), gateway) {
			next = append(next, entry)
			continue
		}
		if !left {
			continue // it is there twice, or there is no status
		}
		var conditions []metav1.Condition
		for _, c := range entry.Conditions {
			if !slices.Contains(ours, c.Type) && meta.FindStatusCondition(stated, c.Type) == nil {
				conditions = append(conditions, c)
			}
		}
		conditions = append(conditions, status.Merge(entry.Conditions, stated, policy.GetGeneration(), now)...)
		entry.Conditions = conditions
		next, left = append(next, entry), false
	}
	if left && len(next) < maxAncestors {
		group, kind, namespace := gatewayv1.Group(gatewayv1.GroupName), gatewayv1.Kind("Gateway"), gatewayv1.Namespace(gateway.Namespace)
		next = append(next, gatewayv1.PolicyAncestorStatus{
			AncestorRef:    gatewayv1.ParentReference{Group: &group, Kind: &kind, Namespace: &namespace, Name: gatewayv1.ObjectName(gateway.Name)},
			ControllerName: Controller,
			Conditions:     status.Merge(nil, stated, policy.GetGeneration(), now),
		})
	}
	return next
}

// policyChanges are the statuses of policies in which the entry of the Gateway differs.
func (r *Reconciler) policyChanges(s *scope) []change {
	judged := map[types.UID]*gatewayapi.Policy{}
	for _, policy := range s.graph.Policies {
		judged[policy.UID] = policy
	}
	gateway := client.ObjectKeyFromObject(s.gateway)
	var changes []change
	for _, policy := range slices.Concat(s.input.Policies, s.unrelated) {
		var stated []metav1.Condition
		if of := judged[policy.UID]; of != nil {
			stated = of.Conditions
		}
		changes = r.appendAncestors(changes, policy, gateway, stated)
	}
	return changes
}

// appendAncestors adds the status for a Gateway to a policy, if its status does not have it already.
func (r *Reconciler) appendAncestors(changes []change, policy *gatewayv1.BackendTLSPolicy, gateway types.NamespacedName, stated []metav1.Condition) []change {
	next := ancestors(policy, policy.Status.Ancestors, gateway, ofPolicies, stated, metav1.NewTime(r.kit.Clock.Now()))
	if len(next) == len(policy.Status.Ancestors) && (len(next) == 0 || reflect.DeepEqual(next, policy.Status.Ancestors)) {
		return changes
	}
	after := policy.DeepCopy()
	after.Status.Ancestors = next
	return append(changes, change{before: policy, after: after})
}

// releasePolicies are the changes that take our entries for a Gateway that has gone, or is not ours, out of the statuses of policies.
func (r *Reconciler) releasePolicies(ctx context.Context, gateway types.NamespacedName) ([]change, error) {
	list, err := r.policies(ctx)
	if err != nil {
		return nil, err
	}
	var changes []change
	for i := range list {
		if hasAncestor(&list[i], gateway) {
			changes = r.appendAncestors(changes, &list[i], gateway, nil)
		}
	}
	return changes, nil
}
