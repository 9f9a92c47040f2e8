package workload_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/workload"
)

var now = time.Unix(10000, 0)

// pod is one of a template, made so many seconds after the first.
func pod(name, template string, made int64, status corev1.PodStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(1000+made, 0),
			Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: template},
		},
		Status: status,
	}
}

// workloadOf is a workload whose current template is "new".
func workloadOf(deployed appsv1.DeploymentStatus, pods ...corev1.Pod) workload.Workload {
	revision, replicas := map[string]string{health.AnnotationRevision: "2"}, int32(2)
	return workload.Workload{
		Name: "shop",
		Deployment: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid", Annotations: revision},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
			Status:     deployed,
		},
		MinReplicas: 2,
		ReplicaSets: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
			Annotations: revision, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "new"},
		}}},
		Pods: pods,
	}
}

func condition(conditionType appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason string) []appsv1.DeploymentCondition {
	return []appsv1.DeploymentCondition{{Type: conditionType, Status: status, Reason: reason, Message: "it says so"}}
}

var (
	serving  = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	starting = corev1.PodStatus{Phase: corev1.PodPending}
	evicted  = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
	crashed  = waits("CrashLoopBackOff")
	// silent is one whose container has run since second 9000 and does not answer its probe.
	silent = corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Unix(8999, 0)}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(9000, 0)}}}},
	}
	rolled  = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
	rolling = appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 1, ReadyReplicas: 2, AvailableReplicas: 2}
	lacking = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 1, AvailableReplicas: 1}
	nothing = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2}
)

func waits(reason string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", Image: "shop:9", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "manifest unknown"}},
	}}}
}

func TestTheTroubleWorthTellingIsFound(t *testing.T) {
	tests := map[string]struct {
		deployed appsv1.DeploymentStatus
		pods     []corev1.Pod
		others   bool // the pods of other templates count, too
		patience time.Duration
		reason   string // of the trouble
		other    bool   // it is that of a pod of another template
		waiting  bool
		recheck  time.Duration
	}{
		"every pod serves":                         {deployed: rolled, pods: []corev1.Pod{pod("a", "new", 0, serving), pod("b", "new", 0, serving)}},
		"one is starting":                          {deployed: lacking, pods: []corev1.Pod{pod("a", "new", 0, serving), pod("b", "new", 0, starting)}, waiting: true},
		"one crashes":                              {deployed: lacking, pods: []corev1.Pod{pod("a", "new", 0, serving), pod("b", "new", 0, crashed)}, reason: slipwayv1alpha1.ReasonCrashLoopBackOff},
		"the newest tells most":                    {deployed: nothing, pods: []corev1.Pod{pod("a", "new", 0, crashed), pod("b", "new", 9, waits("ImagePullBackOff"))}, reason: slipwayv1alpha1.ReasonImageNotFound},
		"equally new ones are told by their names": {deployed: nothing, pods: []corev1.Pod{pod("a", "new", 0, crashed), pod("b", "new", 0, waits("ImagePullBackOff"))}, reason: slipwayv1alpha1.ReasonCrashLoopBackOff},

		"what is replaced crashes":                {deployed: rolling, pods: []corev1.Pod{pod("a", "old", 0, crashed), pod("b", "new", 9, starting)}, waiting: true},
		"what is replaced crashes, and it counts": {deployed: rolling, pods: []corev1.Pod{pod("a", "old", 0, crashed), pod("b", "new", 9, starting)}, others: true, reason: slipwayv1alpha1.ReasonCrashLoopBackOff, other: true, waiting: true},
		"both crash, and both count":              {deployed: rolling, pods: []corev1.Pod{pod("a", "old", 9, waits("ImagePullBackOff")), pod("b", "new", 0, crashed)}, others: true, reason: slipwayv1alpha1.ReasonCrashLoopBackOff},

		"evicted and replaced":                               {deployed: rolled, pods: []corev1.Pod{pod("a", "new", 0, evicted), pod("b", "new", 1, serving), pod("c", "new", 1, serving)}},
		"evicted, and another serves":                        {deployed: lacking, pods: []corev1.Pod{pod("a", "new", 0, evicted), pod("b", "new", 1, serving), pod("c", "new", 1, starting)}, waiting: true},
		"evicted, and another serves that is not shown":      {deployed: lacking, pods: []corev1.Pod{pod("a", "new", 0, evicted)}},
		"evicted, and its successor is starting":             {deployed: nothing, pods: []corev1.Pod{pod("a", "new", 0, evicted), pod("b", "new", 1, starting)}, reason: slipwayv1alpha1.ReasonEvicted, waiting: true},
		"evicted, and its successor crashes":                 {deployed: nothing, pods: []corev1.Pod{pod("a", "new", 0, evicted), pod("b", "new", 1, crashed)}, reason: slipwayv1alpha1.ReasonCrashLoopBackOff},
		"evicted in a rollout, beside what is replaced":      {deployed: rolling, pods: []corev1.Pod{pod("a", "old", 0, serving), pod("b", "new", 1, evicted)}, reason: slipwayv1alpha1.ReasonEvicted},
		"evicted again and again, beside what is replaced":   {deployed: rolling, pods: []corev1.Pod{pod("a", "old", 0, serving), pod("b", "new", 1, evicted), pod("c", "new", 2, starting)}, reason: slipwayv1alpha1.ReasonEvicted, waiting: true},
		"what is replaced was evicted":                       {deployed: rolling, pods: []corev1.Pod{pod("a", "old", 0, evicted), pod("b", "new", 1, starting)}, waiting: true},
		"what is replaced was evicted, and the others count": {deployed: rolling, pods: []corev1.Pod{pod("a", "old", 0, evicted), pod("b", "new", 1, starting)}, others: true, waiting: true},

		"pods cannot be made": {
			deployed: appsv1.DeploymentStatus{Conditions: condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate")},
			pods:     []corev1.Pod{pod("a", "new", 0, crashed)}, reason: slipwayv1alpha1.ReasonPodsNotCreated,
		},
		"a deadline alone is for the rollout to tell": {
			deployed: appsv1.DeploymentStatus{Conditions: condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded")},
			pods:     []corev1.Pod{pod("a", "new", 0, starting)}, waiting: true,
		},
		"it does not answer, and may take its time": {deployed: lacking, pods: []corev1.Pod{pod("a", "new", 0, silent)}, waiting: true},
		"it does not answer, and is not late yet":   {deployed: lacking, pods: []corev1.Pod{pod("a", "new", 0, silent)}, patience: 1001 * time.Second, waiting: true, recheck: time.Second},
		"it does not answer, and is late":           {deployed: lacking, pods: []corev1.Pod{pod("a", "new", 0, silent)}, patience: 1000 * time.Second, reason: slipwayv1alpha1.ReasonProbeFailing},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := workloadOf(tc.deployed, tc.pods...)
			current, others := w.Split()
			if !tc.others {
				others = nil
			}
			got := w.Judge(workload.Judging{Current: current, Others: others, Patience: tc.patience, Now: now})
			reason := ""
			if got.Trouble != nil {
				reason = got.Trouble.Reason
			}
			if reason != tc.reason || got.IsCurrent != (tc.reason != "" && !tc.other) {
				t.Errorf("the trouble is %q (of a current pod: %v), want %q (%v)", reason, got.IsCurrent, tc.reason, !tc.other)
			}
			if (got.Waiting != "") != tc.waiting || got.Recheck != tc.recheck {
				t.Errorf("waits for %q, again after %v; want that it waits: %v, %v", got.Waiting, got.Recheck, tc.waiting, tc.recheck)
			}
		})
	}
}

func TestAKindSaysWhatCountsAndHowItIsCalled(t *testing.T) {
	w := workloadOf(nothing, pod("a", "new", 0, crashed), pod("b", "new", 9, waits("ImagePullBackOff")))
	current, _ := w.Split()
	got := w.Judge(workload.Judging{
		Current: current, Now: now,
		Counts: func(pod *corev1.Pod, reason string) bool {
			return pod.Name != "b" || reason != slipwayv1alpha1.ReasonImageNotFound
		},
		Explain: func(verdict health.Verdict) *health.Trouble {
			return &health.Trouble{Reason: "Ours", Message: verdict.Reason}
		},
	})
	if diff := cmp.Diff(&health.Trouble{Reason: "Ours", Message: slipwayv1alpha1.ReasonCrashLoopBackOff}, got.Trouble); diff != "" {
		t.Error(diff)
	}
}

func TestAStuckRolloutTellsWhatItHangsIn(t *testing.T) {
	deadline := `Deployment "shop" made no progress within its deadline`
	tests := map[string]struct {
		pods    []corev1.Pod
		others  bool
		reason  string
		message string
	}{
		"nothing is known":              {nil, false, slipwayv1alpha1.ReasonProgressDeadlineExceeded, deadline},
		"a pod has a trouble":           {[]corev1.Pod{pod("a", "new", 0, waits("InvalidImageName"))}, false, slipwayv1alpha1.ReasonInvalidImageName, deadline + `: pod "a" container "app": the image name "shop:9" cannot be parsed`},
		"a pod has never answered":      {[]corev1.Pod{pod("a", "new", 0, silent)}, false, slipwayv1alpha1.ReasonProbeFailing, ""},
		"a pod is only starting":        {[]corev1.Pod{pod("a", "new", 0, starting)}, false, slipwayv1alpha1.ReasonProgressDeadlineExceeded, deadline},
		"the trouble is of another one": {[]corev1.Pod{pod("a", "old", 0, crashed)}, true, slipwayv1alpha1.ReasonProgressDeadlineExceeded, deadline},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := workloadOf(rolling, tc.pods...)
			how := workload.Judging{Now: now}
			how.Current, how.Others = w.Split()
			got := w.Stuck(w.Judge(how), how, "its deadline")
			if got.Reason != tc.reason || tc.message != "" && got.Message != tc.message {
				t.Errorf("got %+v, want %s: %s", got, tc.reason, tc.message)
			}
		})
	}
}

func TestWhatIsAskedForAndServes(t *testing.T) {
	zero := appsv1.DeploymentStatus{}
	more := appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 4, ReadyReplicas: 2, AvailableReplicas: 2}
	tests := map[string]struct {
		deployed        appsv1.DeploymentStatus
		replicas        int32 // of the Deployment's spec
		autoscaled      bool
		minimum         int32
		generation      int64
		asked           int32
		serves, rolling bool
	}{
		"as asked":                               {rolled, 2, false, 2, 0, 2, true, false},
		"a pod is lacking":                       {lacking, 2, false, 2, 0, 2, false, false},
		"a rollout":                              {rolling, 2, false, 2, 0, 2, false, true},
		"nobody has looked at it":                {rolled, 2, false, 2, 1, 2, false, true},
		"the number changes":                     {more, 2, false, 2, 0, 2, false, true},
		"nothing is asked for":                   {zero, 0, false, 0, 0, 0, true, false},
		"an autoscaler adds pods":                {more, 4, true, 2, 0, 4, true, false},
		"an autoscaler takes pods away":          {more, 3, true, 2, 0, 3, true, true},
		"autoscaled, and the lower bound lacks":  {lacking, 2, true, 2, 0, 2, false, false},
		"autoscaled, and nobody has looked":      {more, 4, true, 2, 1, 4, false, true},
		"autoscaled, and scaled to none by hand": {zero, 0, true, 2, 0, 0, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := workloadOf(tc.deployed)
			w.Deployment.Generation, w.Deployment.Spec.Replicas, w.MinReplicas = tc.generation, &tc.replicas, tc.minimum
			if tc.autoscaled {
				w.Autoscaler = &autoscalingv2.HorizontalPodAutoscaler{}
			}
			if asked, serves, rolling := w.ReplicasAsked(), w.Serves(), w.Rolling(); asked != tc.asked || serves != tc.serves || rolling != tc.rolling {
				t.Errorf("asks for %d, serves %v, rolls %v; want %d, %v, %v", asked, serves, rolling, tc.asked, tc.serves, tc.rolling)
			}
		})
	}
	absent := workload.Workload{Name: "shop", Deployment: &appsv1.Deployment{}, MinReplicas: 1}
	if absent.Serves() || absent.Rolling() || absent.Judge(workload.Judging{}) != (workload.Verdict{}) {
		t.Error("a Deployment that does not exist is judged")
	}
}

func TestWhyPodsAreMissing(t *testing.T) {
	notReady := slipwayv1alpha1.ReasonReplicasNotReady
	trouble := &health.Trouble{Reason: "A", Message: "a"}
	tests := map[string]struct {
		change  func(*workload.Workload)
		verdict workload.Verdict
		want    health.Trouble
	}{
		"none are asked for": {func(w *workload.Workload) { w.MinReplicas = 0 }, workload.Verdict{Trouble: trouble}, health.Trouble{Reason: slipwayv1alpha1.ReasonScaledToZero, Message: "nothing runs, as spec.replicas says"}},
		"trouble":            {nil, workload.Verdict{Trouble: trouble, Waiting: "b"}, *trouble},
		"one waits":          {nil, workload.Verdict{Waiting: "b"}, health.Trouble{Reason: notReady, Message: "b"}},
		"no Deployment":      {func(w *workload.Workload) { w.Deployment = &appsv1.Deployment{} }, workload.Verdict{}, health.Trouble{Reason: notReady, Message: `Deployment "shop" does not exist`}},
		"nobody says":        {nil, workload.Verdict{}, health.Trouble{Reason: notReady, Message: `Deployment "shop" has fewer ready pods than asked for`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := workloadOf(lacking)
			if tc.change != nil {
				tc.change(&w)
			}
			if diff := cmp.Diff(tc.want, w.NotReady(tc.verdict)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
