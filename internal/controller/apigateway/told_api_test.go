//go:build apitest

package apigateway_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestAnAPIGatewayThatIsBeingDeletedSaysSo(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.gateway()
	f.create(gateway)
	f.waitFor(slipwayv1alpha1.ConditionAccepted, metav1.ConditionTrue, "")
	environment.Eventually(t, func() error {
		if err := f.get("edge", gateway); err != nil {
			return err
		}
		gateway.Finalizers = []string{"example.com/hold"}
		return env.Client.Update(t.Context(), gateway)
	})
	if err := env.Client.Delete(t.Context(), gateway, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	gateway = f.waitFor("Ready", metav1.ConditionFalse, slipwayv1alpha1.ReasonTerminating)
	if got := meta.FindStatusCondition(gateway.Status.Conditions, "Ready").Message; !strings.Contains(got, `APIGateway "edge" is being deleted`) || !strings.Contains(got, "example.com/hold") {
		t.Errorf("the message is %q", got)
	}
	for conditionType, status := range map[string]metav1.ConditionStatus{
		slipwayv1alpha1.ConditionAccepted: metav1.ConditionTrue, slipwayv1alpha1.ConditionProgrammed: metav1.ConditionFalse, slipwayv1alpha1.ConditionDegraded: metav1.ConditionFalse,
	} {
		if err := has(gateway, conditionType, status, ""); err != nil {
			t.Error(err)
		}
	}
	environment.Eventually(t, func() error {
		if err := f.get("edge", gateway); err != nil {
			return err
		}
		gateway.Finalizers = nil
		return env.Client.Update(t.Context(), gateway)
	})
}
