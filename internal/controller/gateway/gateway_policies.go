package gateway

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// ofGatewayPolicies are the types of the conditions in an entry of a GatewayPolicy that we state, or take away.
var ofGatewayPolicies = []string{slipwayv1alpha1.ConditionPolicyAccepted, slipwayv1alpha1.ConditionPolicyLive}

// loadGatewayPolicies reads the GatewayPolicies that name the Gateway, its ListenerSets or its routes.
func (r *Reconciler) loadGatewayPolicies(ctx context.Context, s *scope) error {
	cached, err := r.gatewayPolicies(ctx)
	if err != nil {
		return err
	}
	var list []slipwayv1alpha1.GatewayPolicy
	list, s.err = r.currentPolicies(ctx, s, cached) // status tells, and nothing is made meanwhile
	gateway := client.ObjectKeyFromObject(s.gateway)
	named := map[gatewayapi.Target]bool{{Kind: "Gateway", Name: gateway}: true}
	for _, set := range s.input.ListenerSets {
		named[gatewayapi.Target{Kind: "ListenerSet", Name: client.ObjectKeyFromObject(set)}] = true
	}
	for _, route := range s.input.HTTPRoutes {
		named[gatewayapi.Target{Kind: string(gatewayapi.HTTPRoute), Name: client.ObjectKeyFromObject(route)}] = true
	}
	for _, route := range s.input.GRPCRoutes {
		named[gatewayapi.Target{Kind: string(gatewayapi.GRPCRoute), Name: client.ObjectKeyFromObject(route)}] = true
	}
	for i := range list {
		policy := &list[i]
		if slices.ContainsFunc(gatewayapi.TargetsOf(policy), func(t gatewayapi.Target) bool { return named[t] }) {
			s.input.GatewayPolicies = append(s.input.GatewayPolicies, policy)
			if err := r.loadServices(ctx, s, gatewayapi.ServicesOfGatewayPolicy(policy)); err != nil {
				return err
			}
		} else if concerns(policy, gateway) {
			s.detached = append(s.detached, policy)
		}
	}
	return nil
}

// gatewayPolicies are all GatewayPolicies. They are shared with the cache.
func (r *Reconciler) gatewayPolicies(ctx context.Context) ([]slipwayv1alpha1.GatewayPolicy, error) {
	list := &slipwayv1alpha1.GatewayPolicyList{}
	if err := r.kinds.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the GatewayPolicies: %w", err)
	}
	return list.Items, nil
}

// maxPolicyLists bounds the lists of GatewayPolicies of one namespace each. Above it, one list has all of them.
const maxPolicyLists = 8

// currentPolicies returns the policies with those that there are in place of those that a stale cache shows. The operator that led
// before may have seen more: who has lost his policy must not be let in again, and no Secret is copied for it. The policies of a
// namespace are read until the cache shows the same. What it shows later can only be newer. Somebody who changes policies all the
// time costs reads, and holds nobody up.
func (r *Reconciler) currentPolicies(ctx context.Context, s *scope, cached []slipwayv1alpha1.GatewayPolicy) ([]slipwayv1alpha1.GatewayPolicy, error) {
	namespaces := slices.DeleteFunc(s.ruling(), func(namespace string) bool {
		_, known := r.confirmed.Get(namespace)
		return known || !r.kinds.objects.Watches(namespace)
	})
	if len(namespaces) == 0 || !r.kinds.objects.Has(&slipwayv1alpha1.GatewayPolicy{}) {
		return cached, nil
	}
	from := namespaces
	if len(namespaces) > maxPolicyLists && len(r.namespaces) == 0 {
		from = []string{metav1.NamespaceAll}
	}
	var live []slipwayv1alpha1.GatewayPolicy
	for _, namespace := range from {
		list := &slipwayv1alpha1.GatewayPolicyList{}
		if err := r.kit.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return cached, outcome.Classify("the GatewayPolicies", err)
		}
		live = append(live, list.Items...)
	}
	current := slices.Clone(cached)
	for _, namespace := range namespaces {
		if maps.Equal(policyGenerations(cached, namespace), policyGenerations(live, namespace)) {
			r.confirmed.Add(namespace, true)
			continue
		}
		other := func(in slipwayv1alpha1.GatewayPolicy) bool { return in.Namespace != namespace }
		current = slices.DeleteFunc(current, func(in slipwayv1alpha1.GatewayPolicy) bool { return !other(in) })
		current = append(current, slices.DeleteFunc(slices.Clone(live), other)...)
	}
	return current, nil
}

// ruling are the namespaces whose policies may be for the Gateway: its own, and those of its ListenerSets and routes.
func (s *scope) ruling() []string {
	namespaces := []string{s.gateway.Namespace}
	for _, set := range s.input.ListenerSets {
		namespaces = append(namespaces, set.Namespace)
	}
	for _, route := range s.routes {
		namespaces = append(namespaces, route.GetNamespace())
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// policyGenerations are those of the policies of a namespace.
func policyGenerations(policies []slipwayv1alpha1.GatewayPolicy, namespace string) map[types.UID]int64 {
	generations := map[types.UID]int64{}
	for i := range policies {
		if policies[i].Namespace == namespace {
			generations[policies[i].UID] = policies[i].Generation
		}
	}
	return generations
}

// concerns reports whether a policy has an entry of ours for a Gateway.
func concerns(policy *slipwayv1alpha1.GatewayPolicy, gateway types.NamespacedName) bool {
	return slices.ContainsFunc(policy.Status.Ancestors, func(in slipwayv1alpha1.PolicyAncestorStatus) bool {
		entry := ancestorOf(&in)
		return isAncestor(&entry, policy.Namespace, gateway)
	})
}

// ancestorOf is an entry of a GatewayPolicy as the Gateway API has those of policies.
func ancestorOf(in *slipwayv1alpha1.PolicyAncestorStatus) gatewayv1.PolicyAncestorStatus {
	out := gatewayv1.PolicyAncestorStatus{
		AncestorRef:    gatewayv1.ParentReference{Name: gatewayv1.ObjectName(in.AncestorRef.Name)},
		ControllerName: gatewayv1.GatewayController(in.ControllerName), Conditions: in.Conditions,
	}
	if of := gatewayv1.Group(in.AncestorRef.Group); of != "" {
		out.AncestorRef.Group = &of
	}
	if of := gatewayv1.Kind(in.AncestorRef.Kind); of != "" {
		out.AncestorRef.Kind = &of
	}
	if of := gatewayv1.Namespace(in.AncestorRef.Namespace); of != "" {
		out.AncestorRef.Namespace = &of
	}
	return out
}

// entryOf is the same the other way.
func entryOf(in *gatewayv1.PolicyAncestorStatus) slipwayv1alpha1.PolicyAncestorStatus {
	out := slipwayv1alpha1.PolicyAncestorStatus{
		AncestorRef:    slipwayv1alpha1.PolicyAncestorReference{Name: string(in.AncestorRef.Name)},
		ControllerName: string(in.ControllerName), Conditions: in.Conditions,
	}
	if of := in.AncestorRef.Group; of != nil {
		out.AncestorRef.Group = string(*of)
	}
	if of := in.AncestorRef.Kind; of != nil {
		out.AncestorRef.Kind = string(*of)
	}
	if of := in.AncestorRef.Namespace; of != nil {
		out.AncestorRef.Namespace = string(*of)
	}
	return out
}

// gatewayPolicyChanges are the statuses of GatewayPolicies in which the entry of the Gateway differs. One that is about to be used
// by every pod waits for that.
func (r *Reconciler) gatewayPolicyChanges(s *scope) []change {
	gateway := client.ObjectKeyFromObject(s.gateway)
	judged := map[types.UID]*gatewayapi.GatewayPolicy{}
	for _, policy := range s.graph.GatewayPolicies {
		judged[policy.UID] = policy
	}
	var changes []change
	for _, policy := range slices.Concat(s.input.GatewayPolicies, s.detached) {
		var stated []metav1.Condition
		if of := judged[policy.UID]; of != nil {
			lack := s.policyLack(of)
			if wait := r.policyWait(s, of, lack); wait > 0 {
				s.recheck.After(wait)
				continue
			}
			stated = append(slices.Clone(of.Conditions), livePolicy(of, lack))
		}
		changes = r.appendEntry(changes, policy, gateway, stated)
	}
	return changes
}

// policyDigest is by what a pod says that it uses a policy.
func (s *scope) policyDigest(policy *gatewayapi.GatewayPolicy) string {
	return policy.Digest(func(name types.NamespacedName) string { return s.credentialVersions[name] })
}

// policyLack is why a policy is not used by every pod, or not as if they were one.
func (s *scope) policyLack(policy *gatewayapi.GatewayPolicy) *lack {
	if !policy.Served {
		return nil
	}
	digest := s.policyDigest(policy)
	what := "this generation of the policy"
	if len(policy.KeyAddresses()) > 0 {
		what += ", with what is fetched for auth.jwt.jwksURL or auth.oidc.issuer,"
	}
	if lack := s.served.lacking(what, func(one replicaView) bool { return one.routes[digest] }); lack != nil {
		return cmp.Or(s.served.unfetched(policy), lack)
	}
	if lack := s.served.apart(slipwayv1alpha1.ReasonLimitNotShared); lack != nil && policy.SharesLimit {
		return lack
	}
	if policy.SharesAffinity {
		return s.served.apart(slipwayv1alpha1.ReasonAffinityNotShared)
	}
	return nil
}

// policyWait is how long to hold back the status of a policy.
func (r *Reconciler) policyWait(s *scope, policy *gatewayapi.GatewayPolicy, lack *lack) time.Duration {
	key := fmt.Sprintf("policy/%s/%s", s.gateway.UID, s.policyDigest(policy))
	if lack == nil || !lack.passing {
		r.settling.Remove(key)
		return 0
	}
	return r.settle(key)
}

func livePolicy(policy *gatewayapi.GatewayPolicy, lack *lack) metav1.Condition {
	const condition = slipwayv1alpha1.ConditionPolicyLive
	switch {
	case !policy.Served:
		return status.False(condition, ReasonNotAccepted, "the policy cannot be used: Accepted says why")
	case policy.Futile:
		return status.False(condition, ReasonNotAccepted, "the policy does nothing where it is attached: Accepted says why")
	case lack != nil:
		return status.False(condition, lack.reason, lack.message)
	default:
		return status.True(condition, ReasonLive, "every pod that is ready uses this generation of the policy")
	}
}

// appendEntry adds the status for a Gateway to the changes, if that of a policy does not have it already.
func (r *Reconciler) appendEntry(changes []change, policy *slipwayv1alpha1.GatewayPolicy, gateway types.NamespacedName, stated []metav1.Condition) []change {
	var are []gatewayv1.PolicyAncestorStatus
	for i := range policy.Status.Ancestors {
		are = append(are, ancestorOf(&policy.Status.Ancestors[i]))
	}
	var next []slipwayv1alpha1.PolicyAncestorStatus
	for _, entry := range ancestors(policy, are, gateway, ofGatewayPolicies, stated, metav1.NewTime(r.kit.Clock.Now())) {
		next = append(next, entryOf(&entry))
	}
	if len(next) == len(policy.Status.Ancestors) && (len(next) == 0 || reflect.DeepEqual(next, policy.Status.Ancestors)) {
		return changes
	}
	after := policy.DeepCopy()
	after.Status.Ancestors = next
	return append(changes, change{before: policy, after: after})
}

// releaseGatewayPolicies are the changes that take our entries for a Gateway that has gone, or is not ours, out of the statuses of
// policies.
func (r *Reconciler) releaseGatewayPolicies(ctx context.Context, gateway types.NamespacedName) ([]change, error) {
	list, err := r.gatewayPolicies(ctx)
	if err != nil {
		return nil, err
	}
	var changes []change
	for i := range list {
		if slices.Contains(gatewayapi.TargetsOf(&list[i]), gatewayapi.Target{Kind: "Gateway", Name: gateway}) {
			continue // the status of a target is in that of the policy: see targets
		}
		if concerns(&list[i], gateway) {
			changes = r.appendEntry(changes, &list[i], gateway, nil)
		}
	}
	return changes, nil
}
