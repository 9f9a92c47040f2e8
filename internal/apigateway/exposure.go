package apigateway

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// notExposed is why the Gateway that the HTTPRoute attaches to sends it nothing, or nil.
// A Gateway that has not spoken of it yet is not in the way: no address says that it is
// reached.
func (s *scope) notExposed() *trouble {
	if s.httpRoute.UID == "" || parentKey(s.gateway).Name == "" {
		return nil
	}
	if s.parent.UID == "" {
		return &trouble{slipwayv1alpha1.ReasonParentNotFound, fmt.Sprintf("spec.expose.gateway: there is no Gateway %q", parentKey(s.gateway))}
	}
	_, refusal := s.parentTakes()
	return refusal
}

// parentTakes tells whether the Gateway sends requests to the HTTPRoute, and why it does
// not. It has neither to say before it has seen the HTTPRoute. A refusal counts when it is
// of the HTTPRoute as it is now; that it was taken counts until it is refused, or the
// addresses would come and go with every edit.
func (s *scope) parentTakes() (bool, *trouble) {
	told := s.saidOfHTTPRoute()
	for _, conditionType := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		c := meta.FindStatusCondition(told, string(conditionType))
		if c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == s.httpRoute.Generation {
			return false, &trouble{
				slipwayv1alpha1.ReasonParentRefused,
				fmt.Sprintf("spec.expose.gateway: Gateway %q does not take HTTPRoute %q: %s=False, %s: %s", parentKey(s.gateway), s.httpRoute.Name, c.Type, c.Reason, c.Message),
			}
		}
	}
	accepted := meta.FindStatusCondition(told, string(gatewayv1.RouteConditionAccepted))
	return accepted != nil && accepted.Status == metav1.ConditionTrue, nil
}

// saidOfHTTPRoute are the conditions that the controller of the Gateway has written, not
// those of one that an earlier spec named.
func (s *scope) saidOfHTTPRoute() []metav1.Condition {
	for _, parent := range s.httpRoute.Status.Parents {
		for _, named := range s.httpRoute.Spec.ParentRefs {
			if equality.Semantic.DeepEqual(parent.ParentRef, named) {
				return parent.Conditions
			}
		}
	}
	return nil
}
