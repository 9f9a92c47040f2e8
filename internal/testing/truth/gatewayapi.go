package truth

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
)

// CheckGatewayAPIAtRest returns what is wrong with the status of a GatewayClass, Gateway, route or GatewayPolicy that our
// controller has nothing more to do for. Of other kinds, and of what is somebody else's, it says nothing.
func CheckGatewayAPIAtRest(object *unstructured.Unstructured) error {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: gatewayv1.GroupName, Kind: "GatewayClass"}:
		return checkAs(object, checkClass)
	case schema.GroupKind{Group: gatewayv1.GroupName, Kind: "Gateway"}:
		return checkAs(object, checkGateway)
	case schema.GroupKind{Group: gatewayv1.GroupName, Kind: "HTTPRoute"}, schema.GroupKind{Group: gatewayv1.GroupName, Kind: "GRPCRoute"},
		schema.GroupKind{Group: gatewayv1.GroupName, Kind: "TLSRoute"}, schema.GroupKind{Group: gatewayv1.GroupName, Kind: "TCPRoute"},
		schema.GroupKind{Group: gatewayv1.GroupName, Kind: "UDPRoute"}:
		return checkAs(object, checkRoute)
	case schema.GroupKind{Group: slipwayv1alpha1.SchemeGroupVersion.Group, Kind: "GatewayPolicy"}:
		return checkAs(object, checkPolicy)
	default:
		return nil
	}
}

func checkAs[T any](object *unstructured.Unstructured, check func(*T) error) error {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return err
	}
	return check(typed)
}

func checkClass(class *gatewayv1.GatewayClass) error {
	if class.Spec.ControllerName != gateway.Controller {
		return nil
	}
	return checkSaid("the class", class.Status.Conditions, class.Generation, string(gatewayv1.GatewayClassConditionStatusAccepted))
}

func checkGateway(of *gatewayv1.Gateway) error {
	accepted := meta.FindStatusCondition(of.Status.Conditions, string(gatewayv1.GatewayConditionAccepted))
	if accepted == nil || accepted.Status == metav1.ConditionUnknown {
		return nil // it is nobody's: so the definition of the kind begins
	}
	programmed := meta.IsStatusConditionTrue(of.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
	problems := []error{checkSaid("the Gateway", of.Status.Conditions, of.Generation,
		string(gatewayv1.GatewayConditionAccepted), string(gatewayv1.GatewayConditionProgrammed))}
	if programmed && accepted.Status != metav1.ConditionTrue {
		problems = append(problems, errors.New("programmed, and not accepted"))
	}
	if programmed && len(of.Status.Addresses) == 0 {
		problems = append(problems, errors.New("programmed, and without an address"))
	}
	served := 0
	for i := range of.Status.Listeners {
		l := &of.Status.Listeners[i]
		if !slices.ContainsFunc(of.Spec.Listeners, func(spec gatewayv1.Listener) bool { return spec.Name == l.Name }) {
			problems = append(problems, fmt.Errorf("status has listener %q, which the spec does not have", l.Name))
		}
		problems = append(problems, checkListener(l, of.Generation))
		if meta.IsStatusConditionTrue(l.Conditions, string(gatewayv1.ListenerConditionProgrammed)) {
			served++
		}
	}
	if len(of.Status.Listeners) != len(of.Spec.Listeners) {
		problems = append(problems,
			fmt.Errorf("status has %d listeners, and the spec %d", len(of.Status.Listeners), len(of.Spec.Listeners)))
	}
	if programmed && served == 0 {
		problems = append(problems, errors.New("programmed, and no listener is"))
	}
	return errors.Join(problems...)
}

func checkListener(l *gatewayv1.ListenerStatus, generation int64) error {
	what := fmt.Sprintf("listener %q", l.Name)
	err := checkSaid(what, l.Conditions, generation, string(gatewayv1.ListenerConditionAccepted),
		string(gatewayv1.ListenerConditionResolvedRefs), string(gatewayv1.ListenerConditionProgrammed))
	if !meta.IsStatusConditionTrue(l.Conditions, string(gatewayv1.ListenerConditionProgrammed)) {
		return err
	}
	if !meta.IsStatusConditionTrue(l.Conditions, string(gatewayv1.ListenerConditionAccepted)) {
		err = errors.Join(err, fmt.Errorf("%s is programmed, and not accepted", what))
	}
	if meta.IsStatusConditionTrue(l.Conditions, string(gatewayv1.ListenerConditionConflicted)) {
		err = errors.Join(err, fmt.Errorf("%s is programmed, and conflicted", what))
	}
	return err
}

// anyRoute is what routes of all kinds have in common.
type anyRoute struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec   gatewayv1.CommonRouteSpec `json:"spec"`
	Status gatewayv1.RouteStatus     `json:"status"`
}

func checkRoute(route *anyRoute) error {
	var problems []error
	for i := range route.Status.Parents {
		entry := &route.Status.Parents[i]
		if entry.ControllerName != gateway.Controller {
			continue
		}
		what := fmt.Sprintf("the entry of %q", entry.ParentRef.Name)
		problems = append(problems, checkSaid(what, entry.Conditions, route.Generation,
			string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs), gateway.ConditionLive))
		if !slices.ContainsFunc(route.Spec.ParentRefs, func(ref gatewayv1.ParentReference) bool {
			return reflect.DeepEqual(ref, entry.ParentRef)
		}) {
			problems = append(problems, fmt.Errorf("%s is for no parent of the spec", what))
		}
		if meta.IsStatusConditionTrue(entry.Conditions, gateway.ConditionLive) &&
			!meta.IsStatusConditionTrue(entry.Conditions, string(gatewayv1.RouteConditionAccepted)) {
			problems = append(problems, fmt.Errorf("%s is live, and not accepted", what))
		}
	}
	return errors.Join(problems...)
}

func checkPolicy(policy *slipwayv1alpha1.GatewayPolicy) error {
	var problems []error
	for i := range policy.Status.Ancestors {
		entry := &policy.Status.Ancestors[i]
		if gatewayv1.GatewayController(entry.ControllerName) != gateway.Controller {
			continue
		}
		what := fmt.Sprintf("the entry of %q", entry.AncestorRef.Name)
		problems = append(problems, checkSaid(what, entry.Conditions, policy.Generation,
			string(gatewayv1.PolicyConditionAccepted), gateway.ConditionLive))
	}
	return errors.Join(problems...)
}

// checkSaid finds conditions that are missing, that speak of another generation, or that say nothing.
func checkSaid(what string, conditions []metav1.Condition, generation int64, types ...string) error {
	var problems []error
	for _, conditionType := range types {
		c := meta.FindStatusCondition(conditions, conditionType)
		switch {
		case c == nil:
			problems = append(problems, fmt.Errorf("%s has no condition %s", what, conditionType))
		case c.ObservedGeneration != generation:
			problems = append(problems,
				fmt.Errorf("condition %s of %s speaks of generation %d of %d", conditionType, what, c.ObservedGeneration, generation))
		case c.Reason == "" || c.Message == "":
			problems = append(problems,
				fmt.Errorf("condition %s of %s has reason %q and message %q", conditionType, what, c.Reason, c.Message))
		}
	}
	return errors.Join(problems...)
}
