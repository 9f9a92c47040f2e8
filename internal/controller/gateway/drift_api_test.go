//go:build apitest

package gateway_test

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestDriftIsRepaired(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway()
	f.create(f.class, g)
	f.running(g)
	deployment, exposed := child(f, g, &appsv1.Deployment{}), child(f, g, &corev1.Service{})
	update(f, deployment, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "somebody"
		d.Spec.Replicas = ptr[int32](3)
	})
	update(f, exposed, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
	environment.Eventually(t, func() error {
		if err := errors.Join(f.get(deployment), f.get(exposed)); err != nil {
			return err
		}
		if image := deployment.Spec.Template.Spec.Containers[0].Image; image == "somebody" {
			return errors.New("the image is somebody's")
		}
		if ports := exposed.Spec.Ports; ports[0].Port != 80 {
			return fmt.Errorf("the ports are %+v", ports)
		}
		return nil
	})
	if *deployment.Spec.Replicas != 3 {
		t.Errorf("%d pods, want as many as somebody asked for", *deployment.Spec.Replicas)
	}
}

func TestAStatusThatSomebodyChangesIsRepaired(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway()
	f.create(f.class, g)
	f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionTrue, gatewayv1.GatewayReasonAccepted)
	updateStatus(f, g, func(g *gatewayv1.Gateway) {
		g.Status.Conditions[0].Reason = "Somebody"
		g.Status.Listeners[0].AttachedRoutes = 7
		g.Status.Listeners = append(g.Status.Listeners, gatewayv1.ListenerStatus{Name: "gone", Conditions: []metav1.Condition{}})
	})
	environment.Eventually(t, func() error {
		if err := f.get(g); err != nil {
			return err
		}
		if len(g.Status.Listeners) != 1 || g.Status.Listeners[0].AttachedRoutes != 0 || g.Status.Conditions[0].Reason == "Somebody" {
			return fmt.Errorf("the status is %+v", g.Status)
		}
		return nil
	})
}

// An object of the name of a child that is somebody else's is left alone, and said to be in the way.
func TestAChildWhoseNameIsTakenIsInTheWay(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway()
	taken := service(f.namespace, desired.Name(g))
	f.create(taken, f.class, g)
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionFalse, gatewayv1.GatewayReasonNoResources)
	if err := f.get(taken); err != nil || taken.Spec.Ports[0].Port != 8080 {
		t.Errorf("it was changed: %+v (%v)", taken.Spec, err)
	}
	f.delete(taken)
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionFalse, gatewayv1.GatewayReasonAddressNotAssigned)
}
