//go:build apitest

package webapp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// withHealth has an application probed by HTTP.
func withHealth(a *slipwayv1alpha1.WebApp) {
	a.Spec.Health = &slipwayv1alpha1.HealthCheck{Path: "/healthz"}
}

// failing is the status of a pod whose container runs and is not ready: since now, or never
// was.
func failing(served bool) corev1.PodStatus {
	started, now := metav1.NewTime(time.Now().Add(-time.Minute)), metav1.NewTime(time.Now())
	if !served {
		started, now = now, started
	}
	return corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: now}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}}},
	}
}

// podOf returns the pod of the Deployment that runs an image.
func (f *fixture) podOf(image string) *corev1.Pod {
	f.Helper()
	found := &corev1.Pod{}
	environment.Eventually(f, func() error {
		pods := &corev1.PodList{}
		if err := env.Client.List(f.Context(), pods, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Spec.Containers[0].Image == image {
				found = &pods.Items[i]
				return nil
			}
		}
		return errors.New("no such pod")
	})
	return found
}

// kubeletSays writes an event as the kubelet does.
func (f *fixture) kubeletSays(pod *corev1.Pod, container, reason, message string) {
	f.Helper()
	now := metav1.NewTime(time.Now())
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: f.namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: f.namespace, Name: pod.Name, UID: pod.UID},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message,
		FirstTimestamp: now, LastTimestamp: now, Count: 1, Source: corev1.EventSource{Component: "kubelet", Host: "node"},
	}
	if container != "" {
		event.InvolvedObject.FieldPath = fmt.Sprintf("spec.containers{%s}", container)
	}
	f.create(event)
}

func (f *fixture) setPodStatus(pod *corev1.Pod, status corev1.PodStatus) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := env.Client.Get(f.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		pod.Status = status
		return env.Client.Status().Update(f.Context(), pod)
	})
}

func eventReads(counter *requests.Counter, namespace string) int {
	count := 0
	for kind, n := range counter.Counts().In(namespace) {
		if kind.Verb == "list" && kind.Resource == "events" {
			count += n
		}
	}
	return count
}

// A good application whose pod stops answering is not as expected. It costs one read, none
// while it lasts and none while all is well, and an operator that is started later says the
// same.
func TestAnApplicationThatStopsAnsweringSaysWhatCameBack(t *testing.T) {
	counter := &requests.Counter{}
	operator := env.StartOperator(t, counter.Watch)
	f := newFixture(t)
	app := f.running(withHealth)
	pod := f.podOf(goodImage)
	f.settle()
	if got := eventReads(counter, f.namespace); got != 0 {
		t.Errorf("a rollout that went well cost %d reads of events, want none", got)
	}

	f.kubeletSays(pod, "app", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500")
	f.setPodStatus(pod, failing(true))
	want := fmt.Sprintf(`pod %q container "app" fails its readiness probe: GET /healthz on port 8080: HTTP status 500 (spec.health.path)`, pod.Name)
	reported := f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, slipwayv1alpha1.ReasonProbeFailing)
	for _, conditionType := range []string{"Degraded", "Ready"} {
		if got := meta.FindStatusCondition(reported.Status.Conditions, conditionType).Message; got != want {
			t.Errorf("%s says %q, want %q", conditionType, got, want)
		}
	}
	environment.Eventually(t, func() error { return f.warned(slipwayv1alpha1.ReasonProbeFailing) })
	for range 3 {
		update(f, app, func(a *slipwayv1alpha1.WebApp) {
			metav1.SetMetaDataAnnotation(&a.ObjectMeta, "example.com/touched", time.Now().String())
		})
		f.settle()
	}
	if got := eventReads(counter, f.namespace); got != 1 {
		t.Errorf("a failure that lasts cost %d reads of events, want one", got)
	}

	operator.Stop(t)
	env.StartOperator(t, nil)
	f.settle()
	again := f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, slipwayv1alpha1.ReasonProbeFailing)
	if got := meta.FindStatusCondition(again.Status.Conditions, "Degraded"); got.Message != want || !got.LastTransitionTime.Equal(&meta.FindStatusCondition(reported.Status.Conditions, "Degraded").LastTransitionTime) {
		t.Errorf("after a restart: %+v, want %q", got, want)
	}
	f.rollOut()
	f.setPodStatus(pod, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}})
	f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionFalse, slipwayv1alpha1.ReasonAsExpected)
}

// warned tells whether there is an event of the WebApp with a reason.
func (f *fixture) warned(reason string) error {
	events := &corev1.EventList{}
	if err := env.Client.List(f.Context(), events, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	for _, event := range events.Items {
		if event.InvolvedObject.Kind == "WebApp" && event.Type == corev1.EventTypeWarning && event.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("no event %s of the WebApp", reason)
}

// The Deployment's controller may be the first to give a rollout up. What the kubelet has said
// since the events were read last is part of the verdict all the same.
func TestAVerdictOfTheDeploymentSaysWhatCameBack(t *testing.T) {
	counter := &requests.Counter{}
	env.StartOperator(t, counter.Watch)
	f := newFixture(t)
	f.goodThenBad(withHealth)
	status := failing(false)
	// After so long the next read is minutes away.
	status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(time.Now().Add(-10 * time.Minute))
	f.stick(status)
	environment.Eventually(t, func() error {
		if eventReads(counter, f.namespace) == 0 {
			return errors.New("no events were read")
		}
		return nil
	})
	f.kubeletSays(f.podOf(badImage), "app", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
	environment.Eventually(t, func() error {
		deployment := &appsv1.Deployment{}
		if err := f.get("shop", deployment); err != nil {
			return err
		}
		deployment.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: slipwayv1alpha1.ReasonProgressDeadlineExceeded,
			LastTransitionTime: metav1.NewTime(time.Now()), LastUpdateTime: metav1.NewTime(time.Now()),
		}}
		return env.Client.Status().Update(t.Context(), deployment)
	})
	app := f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, slipwayv1alpha1.ReasonProbeFailing)
	if want := "HTTP status 503"; !strings.Contains(app.Status.Rollback.Message, want) {
		t.Errorf("status.rollback says %q, want %q", app.Status.Rollback.Message, want)
	}
}

// What the pods of the failed revision hung in is not forgotten with them.
func TestARollbackKeepsWhatTheFailedRevisionHungIn(t *testing.T) {
	env.StartOperator(t, nil)
	sandbox := func() corev1.PodStatus {
		return corev1.PodStatus{
			Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now())},
				{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}},
		}
	}
	tests := map[string]struct {
		status                    func() corev1.PodStatus
		container, event, message string
		reason, says              string
		degradedMeanwhile         bool
	}{
		"wrong port": {
			func() corev1.PodStatus { return failing(false) }, "app", "Unhealthy", `Readiness probe failed: Get "http://10.88.0.12:8080/healthz": dial tcp 10.88.0.12:8080: connect: connection refused`,
			slipwayv1alpha1.ReasonProbeFailing, `container "app" fails its readiness probe: GET /healthz on port 8080: connection refused (spec.port)`, false,
		},
		"no sandbox": {
			sandbox, "", "FailedCreatePodSandBox", `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "gvisor" is configured`,
			slipwayv1alpha1.ReasonSandboxFailed, `cannot be set up on its node: failed to get sandbox runtime: no runtime for "gvisor" is configured`, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.goodThenBad(withHealth, func(a *slipwayv1alpha1.WebApp) {
				a.Spec.Rollout = &slipwayv1alpha1.Rollout{ProgressDeadlineSeconds: ptr[int32](6)}
			})
			f.stick(tc.status())
			f.kubeletSays(f.podOf(badImage), tc.container, tc.event, tc.message)
			if tc.degradedMeanwhile {
				f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, tc.reason)
			} else {
				f.wait(func(app *slipwayv1alpha1.WebApp) error {
					if err := has(app, slipwayv1alpha1.ConditionDegraded, metav1.ConditionFalse, ""); err != nil {
						return err
					}
					if message := meta.FindStatusCondition(app.Status.Conditions, "Ready").Message; !strings.Contains(message, "connection refused (spec.port)") {
						return fmt.Errorf("Ready says %q", message)
					}
					return nil
				})
			}
			f.deployed(runsImage(goodImage))
			environment.Eventually(t, func() error { return f.cluster.RollOut(t.Context(), f.namespace, "shop") })
			f.waitFor(slipwayv1alpha1.ConditionProgressing, metav1.ConditionFalse, slipwayv1alpha1.ReasonRolledBack)
			app := f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, tc.reason)
			if err := has(app, slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, tc.reason); err != nil {
				t.Error(err)
			}
			for where, message := range map[string]string{
				"status.rollback": app.Status.Rollback.Message,
				"RolledBack":      meta.FindStatusCondition(app.Status.Conditions, "RolledBack").Message,
				"Degraded":        meta.FindStatusCondition(app.Status.Conditions, "Degraded").Message,
			} {
				if !strings.Contains(message, tc.says) || !strings.Contains(message, "spec.rollout.progressDeadlineSeconds") {
					t.Errorf("%s says %q, want %q", where, message, tc.says)
				}
			}
		})
	}
}
