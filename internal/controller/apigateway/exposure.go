package apigateway

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// notExposed is why the Gateway that the HTTPRoutes attach to sends one of them nothing, or
// nil. A Gateway that has not spoken of it yet is not in the way: no address says that it is
// reached.
func (s *scope) notExposed() *health.Trouble {
	if len(s.existingHTTPRoutes()) == 0 || parentKey(s.gateway).Name == "" {
		return nil
	}
	if s.parent.UID == "" && !s.parentNotWatched {
		return &health.Trouble{
			Reason:  slipwayv1alpha1.ReasonParentNotFound,
			Message: fmt.Sprintf("spec.expose.gateway: there is no Gateway %q", parentKey(s.gateway)),
		}
	}
	_, refusal := s.parentTakes()
	return refusal
}

// exposureUnknown tells that nothing shows whether the HTTPRoutes are reached: the operator
// may not look at the Gateway, and the Gateway has not taken them. It is no trouble, because
// the Gateway may be about to take them.
func (s *scope) exposureUnknown() *health.Trouble {
	if !s.parentNotWatched {
		return nil
	}
	if takes, _ := s.parentTakes(); takes {
		return nil
	}
	return &health.Trouble{
		Reason: slipwayv1alpha1.ReasonParentNotWatched,
		Message: fmt.Sprintf("spec.expose.gateway: Gateway %q has not taken every HTTPRoute, and this operator may not look whether it "+
			"exists: it does not work in namespace %q",
			parentKey(s.gateway), parentKey(s.gateway).Namespace),
	}
}

// classWithoutAddress is the class of an Ingress that the spec names and that nobody has given an address. That is no trouble: a
// controller need not give one. A class that does not exist shows in nothing else.
func (s *scope) classWithoutAddress() string {
	expose := s.gateway.Spec.Expose
	if expose == nil || expose.IngressClassName == nil || s.ingress.UID == "" || len(s.ingress.Status.LoadBalancer.Ingress) > 0 {
		return ""
	}
	return *expose.IngressClassName
}

func (s *scope) existingHTTPRoutes() []*gatewayv1.HTTPRoute {
	var routes []*gatewayv1.HTTPRoute
	for _, route := range s.httpRoutes {
		if exists(route) {
			routes = append(routes, route)
		}
	}
	return routes
}

// parentTakes reports whether the Gateway sends requests to every HTTPRoute, and why it does
// not to one.
func (s *scope) parentTakes() (bool, *health.Trouble) {
	routes := s.existingHTTPRoutes()
	all := len(routes) > 0
	for _, route := range routes {
		takes, refusal := s.parentTakesOne(route)
		if refusal != nil {
			return false, refusal
		}
		all = all && takes
	}
	return all, nil
}

// parentTakesOne has neither to say before the Gateway has seen the HTTPRoute. A refusal
// counts when it is of the HTTPRoute as it is now; that it was taken counts until it is
// refused, or the addresses would come and go with every edit.
func (s *scope) parentTakesOne(route *gatewayv1.HTTPRoute) (bool, *health.Trouble) {
	reported := reportedConditions(route)
	for _, conditionType := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		c := meta.FindStatusCondition(reported, string(conditionType))
		if c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == route.Generation {
			return false, &health.Trouble{
				Reason: slipwayv1alpha1.ReasonParentRefused,
				Message: fmt.Sprintf("spec.expose.gateway: Gateway %q does not take HTTPRoute %q: %s=False, %s: %s", parentKey(s.gateway),
					route.Name, c.Type, c.Reason, c.Message),
			}
		}
	}
	accepted := meta.FindStatusCondition(reported, string(gatewayv1.RouteConditionAccepted))
	return accepted != nil && accepted.Status == metav1.ConditionTrue, nil
}

// reportedConditions are the conditions that the controller of the Gateway has written, not those of one
// that an earlier spec named.
func reportedConditions(route *gatewayv1.HTTPRoute) []metav1.Condition {
	for _, parent := range route.Status.Parents {
		for _, named := range route.Spec.ParentRefs {
			if equality.Semantic.DeepEqual(parent.ParentRef, named) {
				return parent.Conditions
			}
		}
	}
	return nil
}
