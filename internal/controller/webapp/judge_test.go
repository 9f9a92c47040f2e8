package webapp

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// crashing is the scope of an application whose good revision "old" runs and crashes,
// while the spec asks for "new".
func crashing(change func(*scope)) *scope {
	crashed := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", RestartCount: 5, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	}}}
	revision := map[string]string{health.AnnotationRevision: "1"}
	replicas := int32(1)
	s := &scope{
		app: &slipwayv1alpha1.WebApp{},
		deployment: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid", Annotations: revision},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
			Status:     appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1},
		},
		autoscaler: &autoscalingv2.HorizontalPodAutoscaler{}, claim: &corev1.PersistentVolumeClaim{},
		replicaSets: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
			Annotations: revision, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "old"},
		}}},
		pods:       []corev1.Pod{testPod("a", "old", crashed)},
		revisions:  []storedRevision{{namedRevision: namedRevision{name: "old"}, number: 1}},
		wanted:     namedRevision{name: "new"},
		target:     namedRevision{name: "new"},
		intent:     "asked",
		specIntent: "asked",
		applied:    true,
	}
	change(s)
	return s
}

func TestOnlyWhatWasAppliedIsJudged(t *testing.T) {
	earlier := &slipwayv1alpha1.RollbackStatus{Intent: "asked", Spec: "asked", FromRevision: "bad", ToRevision: "old", Reason: "A", Message: "a"}
	missing := outcome.Waitingf(0, slipwayv1alpha1.ReasonSecretNotFound, "Secret is missing")
	tests := map[string]struct {
		change func(*scope)
		// from is the revision that is rolled back; empty: none is.
		from string
	}{
		"the pods are those of the wanted revision": {func(*scope) {}, "new"},
		"the wanted revision could not be applied": {func(s *scope) {
			s.applied, s.err = false, errors.New("webhook timed out")
		}, ""},
		"the good revision crashes": {func(s *scope) { s.wanted.name, s.target.name = "old", "old" }, ""},
		"an earlier rollback stands": {func(s *scope) {
			s.app.Status.Rollback, s.target.name = earlier, "old"
		}, "bad"},
		"an earlier rollback, and the config could not be read": {func(s *scope) {
			s.app.Status.Rollback, s.err = earlier, errors.New("timeout")
			s.intent, s.specIntent, s.wanted.name, s.target.name, s.applied = "", "", "", "", false
		}, "bad"},
		"an earlier rollback, and the config is missing": {func(s *scope) {
			s.app.Status.Rollback, s.config.missing = earlier, missing
			s.intent, s.wanted.name, s.target.name = "", "", "old"
		}, "bad"},
		"an earlier rollback, another spec, and its config is missing": {func(s *scope) {
			s.app.Status.Rollback, s.config.missing = earlier, missing
			s.intent, s.specIntent, s.wanted.name, s.target.name = "", "another", "", "old"
		}, ""},
		"another spec than the one that was rolled back": {func(s *scope) {
			s.app.Status.Rollback, s.intent, s.applied = earlier, "another", false
		}, ""},
		"paused": {func(s *scope) { s.app.Spec.Paused = true }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := crashing(tc.change)
			s.judge(time.Unix(100, 0))
			got := ""
			if s.rollout.rollback != nil {
				got = s.rollout.rollback.FromRevision
			}
			if got != tc.from {
				t.Errorf("revision %q is rolled back, want %q", got, tc.from)
			}
		})
	}
}

// The Deployment's controller says of a rollout that it has given up until it has looked
// at the next one.
func TestAnOldDeadlineIsNotTheNewRollouts(t *testing.T) {
	for _, tc := range []struct {
		since int64
		want  bool
	}{{50, false}, {100, true}, {150, true}} {
		s := crashing(func(s *scope) {
			s.pods = nil
			s.app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "new", StartTime: metav1.Unix(100, 0)}
			s.deployment.Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
				LastTransitionTime: metav1.Unix(tc.since, 0),
			}}
		})
		s.judge(time.Unix(160, 0))
		if got := s.rollout.failed != nil; got != tc.want {
			t.Errorf("given up at %d of a rollout that began at 100: failed is %v, want %v", tc.since, got, tc.want)
		}
	}
}

// Status keeps the second in which a rollout started, not the moment.
func TestADeadlineIsNeverEarly(t *testing.T) {
	deadline := int32(1)
	tests := map[string]struct {
		after time.Duration
		want  bool
	}{
		"at once":                 {0, false},
		"before the deadline":     {999 * time.Millisecond, false},
		"long after the deadline": {2 * time.Second, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			started := time.Unix(100, 950_000_000)
			s := crashing(func(s *scope) {
				s.pods = nil
				s.app.Spec.Rollout = &slipwayv1alpha1.Rollout{ProgressDeadlineSeconds: &deadline}
			})
			s.judge(started)
			s.app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "new", StartTime: s.rollout.startTime}
			s.judge(started.Add(tc.after))
			if got := s.rollout.failed != nil; got != tc.want {
				t.Errorf("failed is %v, want %v", got, tc.want)
			}
		})
	}
}

// A revision with a volume goes on running one pod, whatever a later spec asks for.
func TestAVolumeIsNeverSharedByTwoPods(t *testing.T) {
	three := int32(3)
	for name, spec := range map[string]slipwayv1alpha1.WebAppSpec{
		"replicas":    {Replicas: &three},
		"autoscaling": {Autoscaling: &slipwayv1alpha1.Autoscaling{MinReplicas: &three, MaxReplicas: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			s := crashing(func(s *scope) {
				s.app.Spec = spec
				s.target.Revision = desired.Revision{Spec: slipwayv1alpha1.WebAppSpec{Storage: &slipwayv1alpha1.Storage{MountPath: "/data"}}}
			})
			replicas, err := (&Reconciler{}).statedReplicas(t.Context(), s)
			if err != nil || replicas == nil || *replicas != 1 {
				t.Errorf("%v replicas are stated (%v), want 1", replicas, err)
			}
		})
	}
}

func TestReadyMeansThatPodsServe(t *testing.T) {
	two := int32(2)
	s := crashing(func(s *scope) {
		zero := int32(0)
		s.app.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: &two, MaxReplicas: 9}
		s.deployment.Spec.Replicas, s.deployment.Status, s.pods = &zero, appsv1.DeploymentStatus{}, nil
		s.wanted.name, s.target.name = "old", "old"
	})
	s.judge(time.Unix(100, 0))
	if ready := s.ready(); ready.Status != metav1.ConditionFalse {
		t.Errorf("without a pod Ready is %+v", ready)
	}
}

// Pods that are started again in place of others are progress, as long as nothing is wrong with them: Ready is False, and
// the application has not given up.
func TestPodsThatAreStartedInPlaceOfOthersAreProgress(t *testing.T) {
	three := int32(3)
	tests := map[string]struct {
		available int32
		change    func(*scope)
		want      metav1.ConditionStatus
	}{
		"every pod serves":        {3, func(*scope) {}, metav1.ConditionFalse},
		"one of three is missing": {2, func(*scope) {}, metav1.ConditionTrue},
		"all are missing":         {0, func(*scope) {}, metav1.ConditionTrue},
		"one of three crashes": {2, func(s *scope) {
			s.pods = []corev1.Pod{testPod("a", "old", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
			}}})}
		}, metav1.ConditionFalse},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := crashing(func(s *scope) {
				s.app.Spec.Replicas, s.pods = &three, nil
				s.wanted.name, s.target.name = "old", "old"
				s.deployment.Spec.Replicas = &three
				s.deployment.Status = appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: tc.available, AvailableReplicas: tc.available}
				tc.change(s)
			})
			s.judge(time.Unix(100, 0))
			if progressing := s.progressing(); progressing.Status != tc.want {
				t.Errorf("Progressing is %s %s (%s), want %s", progressing.Status, progressing.Reason, progressing.Message, tc.want)
			}
		})
	}
}

// An autoscaler has asked for more pods than the spec does at the least. They are what there should be until the end.
func TestWhatIsBeingDeletedCountsThePodsThatTheAutoscalerAskedFor(t *testing.T) {
	two, five := int32(2), int32(5)
	s := crashing(func(s *scope) {
		s.app.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: &two, MaxReplicas: 9}
		s.deployment.Spec.Replicas, s.deployment.Status.ReadyReplicas = &five, 5
		s.target, s.wanted = namedRevision{}, namedRevision{}
	})
	if got := s.terminatingStatus(time.Unix(100, 0)).Summary.Replicas; got != "5/5" {
		t.Errorf("kubectl get shows %s", got)
	}
}

// Ready is reported when the rollout is complete. The revision is good when all its pods have shown since then that it goes on serving.
func TestARevisionIsGoodWhenAllItsPodsHaveBeenReadyForLong(t *testing.T) {
	since := func(second int64) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(second, 0),
		}}}
	}
	seconds := func(n int32) func(*scope) {
		return func(s *scope) { s.app.Spec.Rollout = &slipwayv1alpha1.Rollout{MinReadySeconds: &n} }
	}
	as := func(*scope) {}
	ready := func(first, second int64) []corev1.Pod {
		return []corev1.Pod{testPod("a", "new", since(first)), testPod("b", "new", since(second))}
	}
	evicted := testPod("c", "new", corev1.PodStatus{Phase: corev1.PodFailed})
	tests := map[string]struct {
		pods   []corev1.Pod
		change func(*scope)
		proven bool
		again  time.Duration
	}{
		"both are ready since now":               {ready(100, 100), as, false, 11 * time.Second},
		"both have been for the default":         {ready(89, 89), as, true, 0},
		"maybe a moment less":                    {ready(89, 90), as, false, time.Second},
		"one is again since a moment ago":        {ready(10, 98), as, false, 9 * time.Second},
		"one is not seen":                        {ready(10, 10)[:1], as, false, 0},
		"one is not ready":                       {append(ready(10, 10)[:1], testPod("b", "new", corev1.PodStatus{Phase: corev1.PodRunning})), as, false, 0},
		"one of another template is not its own": {append(ready(10, 10)[:1], testPod("b", "old", since(10))), as, false, 0},
		"one that has ended has gone":            {append(ready(10, 10), evicted), as, true, 0},
		"a minute is asked for":                  {ready(50, 50), seconds(60), false, 11 * time.Second},
		"a minute is over":                       {ready(39, 39), seconds(60), true, 0},
		"nothing is asked for":                   {nil, seconds(0), true, 0},
		"the clock of a node is ahead":           {ready(10, 130), as, false, 41 * time.Second},
		"nothing runs": {nil, func(s *scope) {
			s.deployment.Spec.Replicas, s.deployment.Status = new(int32(0)), appsv1.DeploymentStatus{}
		}, false, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			two := int32(2)
			s := crashing(func(s *scope) {
				s.app.Spec.Replicas, s.deployment.Spec.Replicas, s.pods = &two, &two, tc.pods
				s.deployment.Status = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
				s.replicaSets[0].Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "new"
				s.app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "new", StartTime: metav1.Unix(5, 0)}
				tc.change(s)
			})
			s.judge(time.Unix(100, 0))
			if s.rollout.proven != tc.proven || s.recheck.In() != tc.again {
				t.Errorf("good: %v, and looked at again in %v; want %v and %v", s.rollout.proven, s.recheck.In(), tc.proven, tc.again)
			}
			if got, want := s.rollout.startTime.IsZero(), tc.proven || name == "nothing runs"; got != want {
				t.Errorf("the rollout is over: %v (%v), want %v", got, s.rollout.startTime, want)
			}
			if s.rollout.failed != nil || name != "nothing runs" && !s.servesAsAsked() {
				t.Errorf("failed: %+v; serves as asked: %v", s.rollout.failed, s.servesAsAsked())
			}
		})
	}
}

// Once a rollout was complete, the Deployment's controller does not say any more since when it is on its way.
func TestARevisionThatServedIsLateOnlyWhenItsPodsAre(t *testing.T) {
	complete := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: reasonNewReplicaSetAvailable, LastUpdateTime: metav1.Unix(20, 0),
	}
	pod := func(ready corev1.ConditionStatus, since int64, restarts int32) corev1.Pod {
		return testPod("b", "new", corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Unix(since, 0)}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		})
	}
	made := func(second int64) corev1.Pod {
		anew := pod(corev1.ConditionFalse, 0, 0)
		anew.CreationTimestamp = metav1.Unix(second, 0)
		return anew
	}
	during := complete
	during.Reason = "ReplicaSetUpdated"
	tests := map[string]struct {
		pod     corev1.Pod
		reached appsv1.DeploymentCondition
		late    bool
	}{
		"a pod on a new node":                  {made(990), complete, false},
		"a pod that is not ready for a moment": {pod(corev1.ConditionFalse, 990, 0), complete, false},
		"a pod that is not ready for long":     {pod(corev1.ConditionFalse, 30, 0), complete, true},
		"a pod that ends again and again":      {pod(corev1.ConditionFalse, 990, 7), complete, true},
		"a clock that is ahead":                {pod(corev1.ConditionFalse, 2000, 0), complete, true},
		"a rollout that was never complete":    {made(990), during, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			two := int32(2)
			s := crashing(func(s *scope) {
				s.app.Spec.Replicas, s.deployment.Spec.Replicas = &two, &two
				s.pods = []corev1.Pod{testPod("a", "new", pod(corev1.ConditionTrue, 20, 0).Status), tc.pod}
				s.deployment.Status = appsv1.DeploymentStatus{
					Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{tc.reached},
				}
				s.replicaSets[0].Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "new"
				s.app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "new", StartTime: metav1.Unix(5, 0)}
			})
			s.judge(time.Unix(1000, 0))
			if late := s.rollout.failed != nil; late != tc.late {
				t.Errorf("failed: %+v, want %v", s.rollout.failed, tc.late)
			}
		})
	}
}
