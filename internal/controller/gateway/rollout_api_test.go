//go:build apitest

package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// unpullable is a pod whose image does not exist.
var unpullable = corev1.PodStatus{
	Phase: corev1.PodPending,
	ContainerStatuses: []corev1.ContainerStatus{{
		Name: "gateway", Image: "gateway",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}},
	}},
}

// degraded returns the message of the condition, or an error where it is not of that reason.
func (f *fixture) degraded(g *gatewayv1.Gateway, reason string) string {
	f.Helper()
	var message string
	environment.Eventually(f, func() error {
		if err := f.get(g); err != nil {
			return err
		}
		if err := has(g.Status.Conditions, g.Generation, gateway.ConditionDegraded, metav1.ConditionTrue, reason); err != nil {
			return err
		}
		message = meta.FindStatusCondition(g.Status.Conditions, gateway.ConditionDegraded).Message
		return nil
	})
	return message
}

func TestAGatewayWhosePodsDoNotStartSaysWhy(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway()
	f.create(f.class, g)
	deployment := child(f, g, &appsv1.Deployment{})
	environment.Eventually(f, func() error { return f.get(deployment) })
	exposed := child(f, g, &corev1.Service{})
	environment.Eventually(f, func() error { return f.get(exposed) })
	updateStatus(f, exposed, func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.10"}}
	})
	cluster := &workload.Cluster{Client: env.Client}
	if err := cluster.Stick(t.Context(), deployment.Namespace, deployment.Name, unpullable); err != nil {
		t.Fatal(err)
	}
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionFalse, gatewayv1.GatewayReasonNoResources)
	if message := meta.FindStatusCondition(g.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed)).Message; !strings.Contains(message, "does not exist: check --gateway-image") {
		t.Errorf("Programmed says %q, and not what the pod hangs in", message)
	}
	if message := f.degraded(g, slipwayv1alpha1.ReasonImageNotFound); !strings.Contains(message, "does not exist: check --gateway-image") {
		t.Errorf("Degraded says %q, and not what the pod hangs in", message)
	}

	// A pod that is refused is reported by the Deployment alone.
	f.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: "team"}})
	if err := cluster.RefusePods(t.Context(), deployment.Namespace, deployment.Name, `pods "x" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4`); err != nil {
		t.Fatal(err)
	}
	if message := f.degraded(g, slipwayv1alpha1.ReasonPodsForbidden); !strings.Contains(message, "team") {
		t.Errorf("Degraded says %q, and not why pods are refused", message)
	}
}

func TestAGatewayThatServesSaysThatNewPodsDoNotStart(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway()
	f.create(f.class, g)
	f.running(g)
	f.serve(g, []document.ServedListener{web()})
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)
	deployment := child(f, g, &appsv1.Deployment{})
	cluster := &workload.Cluster{Client: env.Client}
	if err := cluster.Stick(t.Context(), deployment.Namespace, deployment.Name, unpullable); err != nil {
		t.Fatal(err)
	}
	f.degraded(g, slipwayv1alpha1.ReasonImageNotFound)
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)

	// The trouble is over, and so is the condition.
	started := unpullable
	started.Phase = corev1.PodRunning
	started.ContainerStatuses = []corev1.ContainerStatus{{Name: "gateway", Image: "gateway", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	if err := cluster.Stick(t.Context(), deployment.Namespace, deployment.Name, started); err != nil {
		t.Fatal(err)
	}
	f.recovered(g)
}

// recovered waits until the Gateway is not degraded any more.
func (f *fixture) recovered(g *gatewayv1.Gateway) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(g); err != nil {
			return err
		}
		if reported := meta.FindStatusCondition(g.Status.Conditions, gateway.ConditionDegraded); reported != nil {
			return fmt.Errorf("Degraded still says %q", reported.Message)
		}
		return nil
	})
}

// A pod that cannot serve the newest objects at all holds up the changes of every tenant. The Gateway says so, and the route why.
func TestAPodThatServesOldObjectsIsTold(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g, route := f.gateway(), f.route("shop", "shop")
	f.create(f.class, g, service(f.namespace, "shop"), route)
	f.running(g)
	f.serve(g, []document.ServedListener{web()}, route)
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	old := document.RouteDigest(route.UID, route.Generation)
	update(f, route, func(r *gatewayv1.HTTPRoute) { r.Spec.Hostnames = []gatewayv1.Hostname{"shop.example.com"} })
	f.board.Publish(document.Document{
		UID: g.UID, Generation: g.Generation, View: &document.View{Current: true}, Listeners: []document.ServedListener{web()}, Routes: []string{old},
		Rejected: &document.Rejected{Generation: g.Generation, Reason: slipwayv1alpha1.ReasonImageIncompatible, Message: "it has a defect"},
	})
	f.degraded(g, slipwayv1alpha1.ReasonImageIncompatible)
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionFalse, gateway.ReasonReplicaBehind)
	of, err := entry(route)
	if err != nil {
		t.Fatal(err)
	}
	if reported := meta.FindStatusCondition(of.Conditions, gateway.ConditionLive).Message; !strings.HasSuffix(reported, ": it has a defect") {
		t.Errorf("Live says %q, and not why", reported)
	}
	f.serve(g, []document.ServedListener{web()}, route)
	f.recovered(g)
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
}
