package apigateway

import (
	"strings"
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
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/health"
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
	current := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "new"}
	starting.Labels = current
	revisions := map[string]string{health.AnnotationRevision: "2"}
	return &scope{
		replicaSets: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Annotations: revisions, Labels: current}}},
		gateway:     gateway, service: &corev1.Service{}, ingress: &networkingv1.Ingress{}, parent: &gatewayv1.Gateway{},
		deployment: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "d", Generation: 2, Annotations: revisions},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UnavailableReplicas: 1},
		},
		check: checkRoutes(gateway), pods: []corev1.Pod{serving, starting},
		answers: map[types.UID]replica.Answer{
			"a": {State: replica.Answering, Document: &document.Document{UID: "uid", Generation: 2}},
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
		"it answers as another program": {running, replica.Answer{State: replica.Incompatible, Detail: "/revision is answered with status 404"}, slipwayv1alpha1.ReasonImageIncompatible, true},
		"there is no room for it":       {running, replica.Answer{State: replica.Crowded, Detail: "no room"}, slipwayv1alpha1.ReasonRolloutInProgress, false},
		"it has never answered":         {running, replica.Answer{State: replica.Silent}, slipwayv1alpha1.ReasonImageIncompatible, false},
		"it has just been asked":        {running, replica.Answer{State: replica.Asking}, slipwayv1alpha1.ReasonRolloutInProgress, false},
		"it answers":                    {running, replica.Answer{State: replica.Answering, Document: &document.Document{UID: "uid"}}, slipwayv1alpha1.ReasonRolloutInProgress, false},
		"it does not know a field": {running, replica.Answer{State: replica.Answering, Document: &document.Document{
			Rejected: &document.Rejected{Generation: 2, Reason: slipwayv1alpha1.ReasonImageIncompatible, Message: "spec.later: this version of the gateway does not know the field"},
		}}, slipwayv1alpha1.ReasonImageIncompatible, true},
		"it did not know a field of an earlier spec": {running, replica.Answer{State: replica.Answering, Document: &document.Document{
			Rejected: &document.Rejected{Generation: 1, Reason: slipwayv1alpha1.ReasonImageIncompatible, Message: "spec.later: this version of the gateway does not know the field"},
		}}, slipwayv1alpha1.ReasonRolloutInProgress, false},
		"it is a gateway that has gone dumb": {running, replica.Answer{State: replica.Silent, Document: &document.Document{UID: "uid"}}, slipwayv1alpha1.ReasonRolloutInProgress, false},
		"it does not run yet":                {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}, replica.Answer{State: replica.Silent}, slipwayv1alpha1.ReasonRolloutInProgress, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			found := newcomer(tc.container, tc.answer)
			found.judgePods(time.Unix(1000, 0))
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

// Nobody answers before the container runs, so it is not asked before.
func TestAPodIsAskedOnceItsContainerRuns(t *testing.T) {
	for name, state := range map[string]corev1.ContainerState{
		"waiting": {Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		"running": {Running: &corev1.ContainerStateRunning{}},
	} {
		pod := &newcomer(state, replica.Answer{}).pods[1]
		if got, want := replica.CanAnswer(pod), name == "running"; got != want {
			t.Errorf("%s: asked %v, want %v", name, got, want)
		}
	}
}

// The record of a pod that has ended stays for days. A rollout has nothing to do with it.
func TestARolloutIsJudgedByThePodsOfItsTemplateThatLive(t *testing.T) {
	at := func(second int64, name, template string, status corev1.PodStatus) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(second, 0),
				Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: template},
			},
			Status: status,
		}
	}
	evicted := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
	serving := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	starting := corev1.PodStatus{Phase: corev1.PodPending}
	waits := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "gateway", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "manifest unknown"}},
		}}}
	}
	tests := map[string]struct {
		pods     []corev1.Pod
		complete bool
		want     string // the reason of the trouble
	}{
		"a new image beside the record of an old pod": {
			[]corev1.Pod{at(1, "a", "old", evicted), at(1, "b", "old", serving), at(9, "c", "new", starting)}, false, "",
		},
		"one that cannot be pulled": {
			[]corev1.Pod{at(1, "a", "old", evicted), at(1, "b", "old", serving), at(9, "c", "new", waits("ImagePullBackOff"))}, false, slipwayv1alpha1.ReasonImageNotFound,
		},
		"more pods beside the record of one of the same template": {
			[]corev1.Pod{at(1, "a", "new", evicted), at(2, "b", "new", serving), at(9, "c", "new", starting)}, false, "",
		},
		"evicted, and nothing in its place yet": {[]corev1.Pod{at(1, "a", "new", evicted)}, false, slipwayv1alpha1.ReasonEvicted},
		"evicted and replaced":                  {[]corev1.Pod{at(1, "a", "new", evicted), at(2, "b", "new", serving)}, true, ""},
		"the newest tells most": {
			[]corev1.Pod{at(1, "a", "new", waits("CreateContainerConfigError")), at(9, "b", "new", waits("InvalidImageName"))}, false, slipwayv1alpha1.ReasonInvalidImageName,
		},
		"one that is replaced, and that cannot be pulled": {
			[]corev1.Pod{at(1, "a", "old", waits("InvalidImageName")), at(9, "b", "new", starting)}, false, "",
		},
		"one that is replaced before any other is made": {[]corev1.Pod{at(1, "a", "old", waits("InvalidImageName"))}, false, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newcomer(corev1.ContainerState{}, replica.Answer{})
			s.pods = tc.pods
			if tc.complete {
				s.deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
			}
			s.judgePods(time.Unix(1000, 0))
			got := ""
			if s.rollout.Trouble != nil {
				got = s.rollout.Trouble.Reason
			}
			if got != tc.want {
				t.Errorf("the trouble is %q, want %q", got, tc.want)
			}
		})
	}
}

// What is wrong with pods that are replaced is no news of the spec that replaces them. Their
// program may be one that never becomes ready, or one that gets requests already.
func TestWhatARolloutReplacesIsNotBlamedOnItsSpec(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Unix(1, 0))}}
	answers := map[string]replica.Answer{
		"no gateway": {State: replica.Incompatible, Detail: "/revision is answered with status 404"},
		"a gateway that does not know a field": {State: replica.Answering, Document: &document.Document{
			Rejected: &document.Rejected{Generation: 2, Reason: slipwayv1alpha1.ReasonImageIncompatible, Message: "spec.later: this version of the gateway does not know the field"},
		}},
	}
	image := slipwayv1alpha1.ReasonImageIncompatible
	reported := func(generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: slipwayv1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: image, ObservedGeneration: generation}}
	}
	tests := map[string]struct {
		ready     bool   // the pod gets requests
		template  string // the pod's
		looked    bool   // the Deployment's controller has looked at it
		reported  []metav1.Condition
		want      string // the reason of Degraded
		isStalled bool
	}{
		"it is replaced":                          {false, "old", true, reported(1), slipwayv1alpha1.ReasonAsExpected, false},
		"it is what was asked for":                {false, "new", true, reported(1), image, true},
		"nobody knows yet":                        {false, "old", false, reported(1), slipwayv1alpha1.ReasonAsExpected, false},
		"nobody knows, but it was told":           {false, "old", false, reported(2), image, true},
		"it is replaced, and gets requests":       {true, "old", true, reported(1), slipwayv1alpha1.ReasonReplicaBehind, false},
		"it gets requests, and was asked for":     {true, "new", true, reported(1), image, true},
		"it gets requests, and nobody knows":      {true, "old", false, reported(1), slipwayv1alpha1.ReasonReplicaBehind, false},
		"it gets requests, nobody knows, is told": {true, "old", false, reported(2), image, true},
	}
	for name, tc := range tests {
		for what, answer := range answers {
			t.Run(what+": "+name, func(t *testing.T) {
				s := newcomer(running, answer)
				s.gateway.Status.Conditions = tc.reported
				if !tc.looked {
					s.deployment.Status.ObservedGeneration = 1
				}
				pod := &s.pods[1]
				pod.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: tc.template}
				if tc.ready {
					pod.Status.Conditions[0].Status = corev1.ConditionTrue
					s.deployment.Status.ReadyReplicas = 2
				}
				s.judgePods(time.Unix(1000, 0))
				s.judgeRoutes()
				gateway := s.gateway.DeepCopy()
				gateway.Status = s.status(time.Unix(1000, 0))
				if err := truth.Check(gateway); err != nil {
					t.Errorf("%v\n%+v", err, gateway.Status)
				}
				degraded := meta.FindStatusCondition(gateway.Status.Conditions, slipwayv1alpha1.ConditionDegraded)
				if degraded.Reason != tc.want {
					t.Errorf("Degraded is %s %s (%s), want %s", degraded.Status, degraded.Reason, degraded.Message, tc.want)
				}
				if stalled := meta.IsStatusConditionTrue(gateway.Status.Conditions, slipwayv1alpha1.ConditionStalled); stalled != tc.isStalled {
					t.Errorf("Stalled: %v, want %v", stalled, tc.isStalled)
				}
			})
		}
	}
}

// A pod that is started again after its rollout has no deadline of the Deployment: the Deployment's controller has finished.
func TestAPodThatIsStartedAgainAndNeverAnswersIsTold(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(1000, 0)}}
	for name, tc := range map[string]struct {
		after time.Duration
		want  string
	}{
		"it has just been started":     {time.Second, slipwayv1alpha1.ReasonAsExpected},
		"it has had the time to start": {300 * time.Second, slipwayv1alpha1.ReasonProbeFailing},
	} {
		t.Run(name, func(t *testing.T) {
			s := newcomer(running, replica.Answer{State: replica.Asking})
			s.pods[0].Labels = s.pods[1].Labels
			s.deployment.Status.Replicas, s.deployment.Status.UpdatedReplicas = 2, 2
			s.deployment.Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable",
			}}
			two := int32(2)
			s.gateway.Spec.Replicas, s.deployment.Spec.Replicas = &two, &two
			now := metav1.Unix(1000, 0).Add(tc.after)
			s.judgePods(now)
			s.judgeRoutes()
			s.unsettled = false
			degraded := meta.FindStatusCondition(s.status(now).Conditions, slipwayv1alpha1.ConditionDegraded)
			if degraded.Reason != tc.want {
				t.Errorf("Degraded is %s %s (%s), want %s", degraded.Status, degraded.Reason, degraded.Message, tc.want)
			}
			if left := s.recheck.In(); tc.want == slipwayv1alpha1.ReasonAsExpected && left != 299*time.Second {
				t.Errorf("looks again after %v", left)
			}
		})
	}
}

// What a rollout hangs in is its reason before the deadline. It stays the reason after it.
func TestARolloutThatHangsKeepsTheReasonThatItHangsIn(t *testing.T) {
	s := newcomer(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName"}}, replica.Answer{})
	s.deployment.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
	}}
	s.judgePods(time.Unix(1000, 0))
	s.judgeRoutes()
	for _, conditionType := range []string{slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ConditionStalled} {
		c := meta.FindStatusCondition(s.status(time.Unix(1000, 0)).Conditions, conditionType)
		if c == nil || c.Reason != slipwayv1alpha1.ReasonInvalidImageName || !strings.Contains(c.Message, "made no progress within its deadline: ") {
			t.Errorf("%s is %+v", conditionType, c)
		}
	}
}
