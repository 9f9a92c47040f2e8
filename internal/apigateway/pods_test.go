package apigateway

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/apigateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/revision"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

// newcomer is what is known when a pod of a new image runs beside one that serves, and
// is not ready.
func newcomer(container corev1.ContainerState, answer replica.Answer) *scope {
	gateway := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "team", UID: "uid", Generation: 2}}
	serving := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "edge-a", UID: "a"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	starting := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "edge-b", UID: "b"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.2",
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "gateway", State: container}},
		},
	}
	replicas := int32(1)
	return &scope{
		gateway: gateway, service: &corev1.Service{}, ingress: &networkingv1.Ingress{}, httpRoute: &gatewayv1.HTTPRoute{}, parent: &gatewayv1.Gateway{},
		deployment: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "d", Generation: 2},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UnavailableReplicas: 1},
		},
		check: checkRoutes(gateway), pods: []corev1.Pod{serving, starting},
		answers: map[types.UID]replica.Answer{
			"a": {State: replica.Answering, Document: &revision.Document{UID: "uid", Generation: 2}},
			"b": answer,
		},
	}
}

// A pod whose program is no gateway never becomes ready: waiting for the deadline of the
// rollout would tell nobody why.
func TestAPodThatIsNotReadyAndNoGatewayIsNamed(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Unix(1, 0))}}
	tests := map[string]struct {
		container   corev1.ContainerState
		answer      replica.Answer
		wantReason  string
		wantStalled bool
	}{
		"it answers as another program":      {running, replica.Answer{State: replica.Incompatible, Detail: "/revision is answered with status 404"}, slipwayv1alpha1.ReasonImageIncompatible, true},
		"it has never answered":              {running, replica.Answer{State: replica.Silent}, slipwayv1alpha1.ReasonImageIncompatible, false},
		"it has just been asked":             {running, replica.Answer{State: replica.Asking}, slipwayv1alpha1.ReasonRolloutInProgress, false},
		"it answers":                         {running, replica.Answer{State: replica.Answering, Document: &revision.Document{UID: "uid"}}, slipwayv1alpha1.ReasonRolloutInProgress, false},
		"it is a gateway that has gone dumb": {running, replica.Answer{State: replica.Silent, Document: &revision.Document{UID: "uid"}}, slipwayv1alpha1.ReasonRolloutInProgress, false},
		"it does not run yet":                {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}, replica.Answer{State: replica.Silent}, slipwayv1alpha1.ReasonRolloutInProgress, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			found := newcomer(tc.container, tc.answer)
			found.judgePods()
			found.judgeRoutes()
			gateway := found.gateway.DeepCopy()
			gateway.Status = found.status(time.Unix(1000, 0))
			if err := truth.Check(gateway); err != nil {
				t.Errorf("%v\n%+v", err, gateway.Status)
			}
			ready := meta.FindStatusCondition(gateway.Status.Conditions, slipwayv1alpha1.ConditionReady)
			if ready.Status != metav1.ConditionFalse || ready.Reason != tc.wantReason {
				t.Errorf("Ready is %s %s (%s), want False %s", ready.Status, ready.Reason, ready.Message, tc.wantReason)
			}
			if stalled := meta.IsStatusConditionTrue(gateway.Status.Conditions, slipwayv1alpha1.ConditionStalled); stalled != tc.wantStalled {
				t.Errorf("Stalled: %v, want %v", stalled, tc.wantStalled)
			}
			for _, serving := range []string{slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ConditionProgrammed} {
				if !meta.IsStatusConditionTrue(gateway.Status.Conditions, serving) {
					t.Errorf("%s is not True, and one pod serves", serving)
				}
			}
		})
	}
}

// Nobody answers before the container runs, so that no time of patience is lost on it.
func TestAPodIsAskedOnceItsContainerRuns(t *testing.T) {
	for name, state := range map[string]corev1.ContainerState{
		"waiting": {Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		"running": {Running: &corev1.ContainerStateRunning{}},
	} {
		pod := &newcomer(state, replica.Answer{}).pods[1]
		if got, want := answers(pod), name == "running"; got != want {
			t.Errorf("%s: asked %v, want %v", name, got, want)
		}
	}
}
