package gateway

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Of several operators for different namespaces each may see every class. What one has said another does not say again.
func TestWhoOfSeveralOperatorsSpeaksOfAClass(t *testing.T) {
	accepted := func(status metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: "Accepted", Status: status, ObservedGeneration: generation}}
	}
	ours := supportedFeatures()
	named := func(namespace string) *gatewayv1.ParametersReference {
		return &gatewayv1.ParametersReference{Group: slipwayv1alpha1.GroupName, Kind: parametersKind, Name: "any", Namespace: new(gatewayv1.Namespace(namespace))}
	}
	for name, tc := range map[string]struct {
		ref      *gatewayv1.ParametersReference
		said     []metav1.Condition
		features []gatewayv1.SupportedFeature
		leaves   bool
	}{
		"nothing was said":                           {leaves: false},
		"the default of the API server":              {said: accepted(metav1.ConditionUnknown, 2), leaves: false},
		"of an earlier generation":                   {said: accepted(metav1.ConditionTrue, 1), features: ours, leaves: false},
		"all was said":                               {said: accepted(metav1.ConditionTrue, 2), features: ours, leaves: true},
		"another one does not know the parameters":   {said: accepted(metav1.ConditionFalse, 2), features: ours, leaves: true},
		"an older one was there first":               {said: accepted(metav1.ConditionTrue, 2), features: ours[1:], leaves: false},
		"a newer one was there first":                {said: accepted(metav1.ConditionTrue, 2), features: append(ours[1:len(ours):len(ours)], gatewayv1.SupportedFeature{Name: "X"}, gatewayv1.SupportedFeature{Name: "Y"}), leaves: true},
		"one with another feature":                   {said: accepted(metav1.ConditionTrue, 2), features: []gatewayv1.SupportedFeature{{Name: "X"}}, leaves: true},
		"parameters here, whatever was said":         {ref: named("here"), said: accepted(metav1.ConditionFalse, 2), features: ours, leaves: false},
		"parameters elsewhere, and nothing was said": {ref: named("elsewhere"), leaves: true},
		"parameters in no namespace":                 {ref: named(""), said: accepted(metav1.ConditionFalse, 2), features: ours, leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			class.Spec.ParametersRef = tc.ref
			class.Status = gatewayv1.GatewayClassStatus{Conditions: tc.said, SupportedFeatures: tc.features}
			r := &ClassReconciler{limited: true, parameters: parameters{watched: func(namespace string) bool { return namespace == "here" }}}
			if got := r.leaves(class, classStatus(class, "", metav1.Time{})); got != tc.leaves {
				t.Errorf("it leaves the status: %v, want %v", got, tc.leaves)
			}
		})
	}
}
