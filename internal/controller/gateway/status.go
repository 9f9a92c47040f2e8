package gateway

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// maxAddresses is how many status holds.
const maxAddresses = 16

// status computes what we have to say of the Gateway, and of nothing else.
func (s *scope) status(now time.Time) gatewayv1.GatewayStatus {
	at := metav1.NewTime(now)
	next := gatewayv1.GatewayStatus{Addresses: s.addresses(), Listeners: []gatewayv1.ListenerStatus{}}
	for _, l := range s.graph.Of(nil) {
		conditions := append(slices.Clone(l.Conditions), s.listenerProgrammed(l))
		next.Listeners = append(next.Listeners, gatewayv1.ListenerStatus{
			Name: l.Name, SupportedKinds: l.Kinds, AttachedRoutes: l.Attached,
			Conditions: status.Merge(conditionsOfListener(s.gateway.Status.Listeners, l.Name), conditions, s.gateway.Generation, at),
		})
	}
	if s.countsSets {
		next.AttachedListenerSets = &s.graph.AttachedSets
	}
	conditions := []metav1.Condition{s.graph.Accepted, s.graph.ResolvedRefs, s.programmed()}
	for _, passing := range []*metav1.Condition{s.graph.Insecure, s.degraded()} {
		if passing != nil {
			conditions = append(conditions, *passing)
		}
	}
	conditions = append(conditions, s.pullSecrets.Condition(ConditionPullSecretMissing)...)
	next.Conditions = status.Merge(s.gateway.Status.Conditions, conditions, s.gateway.Generation, at)
	return next
}

// conditionsOfListener are the conditions of a listener as they are.
func conditionsOfListener(listeners []gatewayv1.ListenerStatus, name gatewayv1.SectionName) []metav1.Condition {
	for i := range listeners {
		if listeners[i].Name == name {
			return listeners[i].Conditions
		}
	}
	return nil
}

func (s *scope) listenerProgrammed(l *gatewayapi.Listener) metav1.Condition {
	const programmed = string(gatewayv1.ListenerConditionProgrammed)
	if !l.Valid {
		reason := string(gatewayv1.ListenerReasonInvalid)
		if l.Set != nil && l.Conflict() != "" {
			reason = l.Conflict()
		}
		return status.False(programmed, reason, l.Why())
	}
	if at := slices.IndexFunc(l.Certificates, func(name types.NamespacedName) bool { return s.leftOut[name] }); at >= 0 {
		return status.False(programmed, string(gatewayv1.ListenerReasonInvalid),
			fmt.Sprintf("tls.certificateRefs: Secret %q is not copied: the certificates of ListenerSets of this Gateway exceed %d KiB", l.Certificates[at], maxCopied>>10))
	}
	if lack := s.listenerLack(l); lack != nil {
		return status.False(programmed, string(gatewayv1.ListenerReasonPending), lack.message)
	}
	return status.True(programmed, string(gatewayv1.ListenerReasonProgrammed), "every pod that is ready serves the listener")
}

// programmed is the summary: is all that is valid of the Gateway's own listeners served, where clients find it?
func (s *scope) programmed() metav1.Condition {
	no := func(reason gatewayv1.GatewayConditionReason, message string) metav1.Condition {
		return status.False(string(gatewayv1.GatewayConditionProgrammed), string(reason), message)
	}
	own := s.graph.Of(nil)
	if s.graph.Accepted.Status == metav1.ConditionTrue && !anyValid(own) {
		first := own[0] // one that is accepted, because the Gateway is
		return no(gatewayv1.GatewayReasonInvalid, fmt.Sprintf("no listener can be served: listener %q: %s", first.Name, first.Why()))
	}
	if reason, message := s.unreachable(); reason != "" {
		return no(reason, message)
	}
	if lack := s.firstLack(own); lack != nil {
		if lack.reason == ReasonNoReplica {
			return no(s.noReplica())
		}
		return no(gatewayv1.GatewayReasonPending, lack.message)
	}
	return status.True(string(gatewayv1.GatewayConditionProgrammed), string(gatewayv1.GatewayReasonProgrammed), "every pod that is ready serves every listener that can be served")
}

// unreachable is why clients reach no listener at all. An empty reason: they do.
func (s *scope) unreachable() (gatewayv1.GatewayConditionReason, string) {
	if s.graph.Accepted.Status != metav1.ConditionTrue {
		return gatewayv1.GatewayReasonInvalid, s.graph.Accepted.Message
	}
	if e := outcome.Worst(s.err); e.Stalls() {
		return gatewayv1.GatewayReasonNoResources, e.Message
	} else if e != nil {
		return gatewayv1.GatewayReasonPending, e.Message
	}
	addresses := s.addresses()
	for i, asked := range desired.RequestedAddresses(s.gateway) {
		if !slices.ContainsFunc(addresses, func(a gatewayv1.GatewayStatusAddress) bool { return a.Value == asked }) {
			return gatewayv1.GatewayReasonAddressNotUsable, fmt.Sprintf("spec.addresses[%d].value: Service %q has not got %q", i, desired.Name(s.gateway), asked)
		}
	}
	if len(addresses) == 0 {
		return gatewayv1.GatewayReasonAddressNotAssigned, fmt.Sprintf("Service %q has no address yet", desired.Name(s.gateway))
	}
	return "", ""
}

// firstLack is why the first valid listener that not every pod serves is not served. Nil: all are.
func (s *scope) firstLack(listeners []*gatewayapi.Listener) *lack {
	for _, l := range listeners {
		if !l.Valid {
			continue
		}
		if lack := s.listenerLack(l); lack != nil {
			return lack
		}
	}
	return nil
}

// addresses are where the Gateway is reached: by what balances the load, or in the cluster where nothing does.
func (s *scope) addresses() []gatewayv1.GatewayStatusAddress {
	var list []gatewayv1.GatewayStatusAddress
	add := func(kind gatewayv1.AddressType, value string) {
		if value != "" && value != corev1.ClusterIPNone && len(list) < maxAddresses {
			list = append(list, gatewayv1.GatewayStatusAddress{Type: &kind, Value: value})
		}
	}
	if s.service.UID == "" {
		return nil
	}
	if s.service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		add(gatewayv1.IPAddressType, s.service.Spec.ClusterIP)
		return list
	}
	for _, at := range s.service.Status.LoadBalancer.Ingress {
		add(gatewayv1.IPAddressType, at.IP)
		add(gatewayv1.HostnameAddressType, at.Hostname)
	}
	return list
}

// unsettled reports whether a pod is about to say something else of one of some listeners.
func (s *scope) unsettled(listeners []*gatewayapi.Listener) bool {
	for _, l := range listeners {
		if !l.Valid {
			continue
		}
		if lack := s.listenerLack(l); lack != nil && lack.passing {
			return true
		}
	}
	return false
}

// ofGateways are the types of the conditions of a Gateway that we state only at times, and take away.
var ofGateways = []string{string(gatewayv1.GatewayConditionInsecureFrontendValidationMode), ConditionDegraded, ConditionPullSecretMissing}

// ofListeners are the types of the conditions of a listener that we state, or take away.
var ofListeners = []string{
	string(gatewayv1.ListenerConditionAccepted), string(gatewayv1.ListenerConditionResolvedRefs), string(gatewayv1.ListenerConditionProgrammed),
	string(gatewayv1.ListenerConditionConflicted), string(gatewayv1.ListenerConditionOverlappingTLSConfig),
}

// cleaned is a status without what should not be there any more beside what we state: listeners that the spec does not have, and
// conditions of ours that are over. Somebody else may have stated them, so that our apply does not remove them.
func cleaned(is, next gatewayv1.GatewayStatus) (gatewayv1.GatewayStatus, bool) {
	clean := *is.DeepCopy()
	clean.Listeners = slices.DeleteFunc(clean.Listeners, func(l gatewayv1.ListenerStatus) bool {
		return !slices.ContainsFunc(next.Listeners, func(n gatewayv1.ListenerStatus) bool { return n.Name == l.Name })
	})
	clean.Conditions = slices.DeleteFunc(clean.Conditions, func(c metav1.Condition) bool {
		return slices.Contains(ofGateways, c.Type) && !slices.ContainsFunc(next.Conditions, func(n metav1.Condition) bool { return n.Type == c.Type })
	})
	dirty := len(clean.Listeners) != len(is.Listeners) || len(clean.Conditions) != len(is.Conditions)
	for i := range clean.Listeners {
		l := &clean.Listeners[i]
		var stated []metav1.Condition
		for _, n := range next.Listeners {
			if n.Name == l.Name {
				stated = n.Conditions
			}
		}
		before := len(l.Conditions)
		l.Conditions = slices.DeleteFunc(l.Conditions, func(c metav1.Condition) bool {
			return slices.Contains(ofListeners, c.Type) && !slices.ContainsFunc(stated, func(n metav1.Condition) bool { return n.Type == c.Type })
		})
		dirty = dirty || len(l.Conditions) != before
	}
	return clean, dirty
}

// sameStatus reports whether a status says all that we have to say, and nothing that is over.
func sameStatus(is, next gatewayv1.GatewayStatus) bool {
	if !sameCount(is.AttachedListenerSets, next.AttachedListenerSets) || len(is.Listeners) != len(next.Listeners) || !slices.EqualFunc(is.Addresses, next.Addresses, sameAddress) || !sameConditions(is.Conditions, next.Conditions) {
		return false
	}
	for i := range next.Listeners {
		n := &next.Listeners[i]
		at := slices.IndexFunc(is.Listeners, func(l gatewayv1.ListenerStatus) bool { return l.Name == n.Name })
		if at < 0 {
			return false
		}
		l := &is.Listeners[at]
		if l.AttachedRoutes != n.AttachedRoutes || !slices.EqualFunc(l.SupportedKinds, n.SupportedKinds, sameKind) || !sameConditions(l.Conditions, n.Conditions) {
			return false
		}
	}
	_, dirty := cleaned(is, next)
	return !dirty
}

// sameCount reports whether a number is what is stated, if one is.
func sameCount(is, stated *int32) bool { return stated == nil || is != nil && *is == *stated }

func sameAddress(a, b gatewayv1.GatewayStatusAddress) bool {
	return a.Value == b.Value && a.Type != nil && b.Type != nil && *a.Type == *b.Type
}

func sameKind(a, b gatewayv1.RouteGroupKind) bool {
	return a.Kind == b.Kind && a.Group != nil && b.Group != nil && *a.Group == *b.Group
}

// sameConditions reports whether conditions hold the stated ones. Others are somebody else's.
func sameConditions(are, stated []metav1.Condition) bool {
	for _, want := range stated {
		if !slices.ContainsFunc(are, func(c metav1.Condition) bool {
			return c.Type == want.Type && c.Status == want.Status && c.Reason == want.Reason && c.Message == want.Message &&
				c.ObservedGeneration == want.ObservedGeneration && c.LastTransitionTime.Equal(&want.LastTransitionTime)
		}) {
			return false
		}
	}
	return true
}
