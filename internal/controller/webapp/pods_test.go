package webapp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

func testPod(name, templateHash string, status corev1.PodStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: templateHash}},
		Status:     status,
	}
}

// An evicted pod stays in the cluster long after another has taken its place.
func TestAPodThatHasEndedCountsOnlyWhilePodsAreLackingAndNothingElseSaysWhy(t *testing.T) {
	evicted := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
	serving := corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	starting := corev1.PodStatus{Phase: corev1.PodPending}
	crashed := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}},
	}}}
	tests := map[string]struct {
		ready int32
		pods  []corev1.Pod
		want  string
	}{
		"replaced":                       {1, []corev1.Pod{testPod("a", "new", evicted), testPod("b", "new", serving)}, ""},
		"its successor is starting":      {0, []corev1.Pod{testPod("a", "new", evicted), testPod("b", "new", starting)}, "Evicted"},
		"its successor has a trouble":    {0, []corev1.Pod{testPod("a", "new", evicted), testPod("b", "new", crashed)}, "CrashLoopBackOff"},
		"scaled up beside it":            {1, []corev1.Pod{testPod("a", "new", evicted), testPod("b", "new", serving), testPod("c", "new", starting)}, ""},
		"of an earlier template":         {0, []corev1.Pod{testPod("a", "old", evicted), testPod("b", "new", starting)}, ""},
		"a live one of another template": {0, []corev1.Pod{testPod("a", "old", crashed), testPod("b", "new", starting)}, "CrashLoopBackOff"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			revision := map[string]string{health.AnnotationRevision: "2"}
			s := &scope{
				app: &slipwayv1alpha1.WebApp{},
				deployment: &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid", Annotations: revision},
					Spec:       appsv1.DeploymentSpec{Replicas: new(max(1, int32(len(tc.pods)-1)))},
					Status:     appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: tc.ready, AvailableReplicas: tc.ready},
				},
				claim: &corev1.PersistentVolumeClaim{},
				replicaSets: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
					Annotations: revision, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "new"},
				}}},
				pods:       tc.pods,
				specIntent: "asked",
			}
			s.judge(time.Unix(0, 0))
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

// What a rollout replaces crashes as it did before: that is no news of the spec that the
// status speaks of from now on.
func TestTroubleOfOldPodsDoesNotStandUnderANewGeneration(t *testing.T) {
	crashed := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}},
	}}}
	starting := corev1.PodStatus{Phase: corev1.PodPending}
	start := metav1.NewTime(time.Unix(1000, 0))
	born := func(pod corev1.Pod, at int64) corev1.Pod {
		pod.CreationTimestamp = metav1.NewTime(time.Unix(at, 0))
		return pod
	}
	rolling := &slipwayv1alpha1.RolloutStatus{Revision: "shop-new", StartTime: start}
	tests := map[string]struct {
		unobserved bool
		change     func(*scope)
		pods       []corev1.Pod
		// trouble is of which pod; empty: none.
		trouble string
	}{
		"the new one is starting":                  {false, nil, []corev1.Pod{testPod("a", "old", crashed), testPod("b", "new", starting)}, ""},
		"the new one crashes too":                  {false, nil, []corev1.Pod{testPod("a", "old", crashed), testPod("b", "new", crashed)}, "b"},
		"nobody has looked at the new template":    {true, nil, []corev1.Pod{testPod("a", "old", crashed)}, ""},
		"nobody has, and the rollout is known":     {true, func(s *scope) { s.app.Status.Rollout = rolling }, []corev1.Pod{born(testPod("a", "old", crashed), 999)}, ""},
		"the number of pods of a bad one changes":  {true, func(s *scope) { s.app.Status.Rollout = rolling }, []corev1.Pod{born(testPod("a", "new", crashed), 1000)}, "a"},
		"the number of pods of a good one changes": {true, func(s *scope) { s.revisions = []storedRevision{{namedRevision: s.target}} }, []corev1.Pod{testPod("a", "new", crashed)}, "a"},
		"nothing may be changed":                   {false, func(s *scope) { s.applied = false }, []corev1.Pod{testPod("a", "old", crashed)}, "a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := crashing(func(s *scope) {
				s.app.Status.Rollout = nil
				s.target = namedRevision{name: "shop-new"}
				s.wanted, s.revisions, s.pods = s.target, nil, tc.pods
				s.replicaSets[0].Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "new"
				if tc.unobserved {
					s.deployment.Generation = s.deployment.Status.ObservedGeneration + 1
				}
				if tc.change != nil {
					tc.change(s)
				}
			})
			s.judge(time.Unix(1001, 0))
			got := ""
			if s.rollout.Trouble != nil {
				got = s.rollout.Trouble.Message
			}
			if (got == "") != (tc.trouble == "") || !strings.HasPrefix(got, fmt.Sprintf("pod %q", tc.trouble)) && got != "" {
				t.Errorf("the trouble is %q, want that of %q", got, tc.trouble)
			}
			if tc.trouble == "" && strings.Contains(s.rolloutMessage(), `"a"`) {
				t.Errorf("the rollout waits for the old pod: %s", s.rolloutMessage())
			}
		})
	}
}

// The kubelet goes back and forth between ErrImagePull and ImagePullBackOff; a rollout that
// has failed and is held must not be called failed and not failed in turns.
func TestAHeldFailureLastsAsLongAsItsTrouble(t *testing.T) {
	pull := func(reason, answer string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", Image: "shop:9",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: answer}},
		}}}
	}
	revision := map[string]string{health.AnnotationRevision: "2"}
	app := &slipwayv1alpha1.WebApp{}
	app.Spec.Rollout = &slipwayv1alpha1.Rollout{OnFailure: slipwayv1alpha1.FailurePolicyHold}
	steps := []struct {
		pod  corev1.PodStatus
		want bool
	}{
		{pull("ErrImagePull", "not found"), false},
		{pull("ImagePullBackOff", "not found"), true},
		{pull("ErrImagePull", "not found"), true},
		{pull("ErrImagePull", "unauthorized"), false},
		{pull("ImagePullBackOff", "unauthorized"), true},
		{corev1.PodStatus{Phase: corev1.PodPending}, false},
	}
	for i, step := range steps {
		s := &scope{
			app:        app,
			deployment: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid", Annotations: revision}},
			service:    &corev1.Service{},
			claim:      &corev1.PersistentVolumeClaim{},
			replicaSets: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
				Annotations: revision, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "new"},
			}}},
			pods:       []corev1.Pod{testPod("a", "new", step.pod)},
			wanted:     namedRevision{name: "shop-new"},
			target:     namedRevision{name: "shop-new"},
			specIntent: "asked",
			applied:    true,
		}
		now := time.Unix(int64(i), 0)
		s.judge(now)
		if got := s.rollout.failed != nil; got != step.want {
			t.Errorf("step %d: failed is %v, want %v", i, got, step.want)
		}
		app.Status = s.status(now)
	}
}
