//go:build apitest

package webapp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

const (
	goodImage = "registry.example.com/shop:1"
	badImage  = "registry.example.com/shop:bad"
)

func waitingContainer(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: corev1.PodPending,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", Image: badImage,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}},
	}
}

func imageNotFound() corev1.PodStatus {
	return waitingContainer("ImagePullBackOff", `Back-off pulling image "`+badImage+`": ErrImagePull: failed to resolve reference: not found`)
}

// A status that a pod hangs with is on the WebApp, with the pod's name, and goes as
// quickly when it is over.
func TestTheReasonWhyARolloutIsStuckIsNamed(t *testing.T) {
	env.StartOperator(t, nil)
	crash := waitingContainer("CrashLoopBackOff", "back-off 10s restarting failed container")
	crash.ContainerStatuses[0].RestartCount = 1
	crash.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, Message: "cannot open database\n"}
	initCrash := corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
		Name: "migrate", RestartCount: 1,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Message: "no schema"}},
	}}}
	unschedulable := corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu.",
	}}}
	tests := map[string]struct {
		status corev1.PodStatus
		reason string
		says   []string
	}{
		"missing tag":      {imageNotFound(), "ImageNotFound", []string{`pod "`, badImage, "spec.image"}},
		"denied":           {waitingContainer("ErrImagePull", "pull access denied, repository does not exist or may require authorization"), "ImagePullDenied", []string{"spec.imagePullSecrets"}},
		"registry away":    {waitingContainer("ErrImagePull", "dial tcp 10.0.0.1:443: i/o timeout"), "ImagePullBackOff", []string{badImage}},
		"crash loop":       {crash, "CrashLoopBackOff", []string{`pod "`, "exit code 3", "cannot open database"}},
		"init container":   {initCrash, "CrashLoopBackOff", []string{`init container "migrate"`, "exit code 7", "no schema"}},
		"unschedulable":    {unschedulable, "Unschedulable", []string{"3 Insufficient cpu"}},
		"config error":     {waitingContainer("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"), "CreateContainerConfigError", []string{"runAsNonRoot"}},
		"bad image name":   {waitingContainer("InvalidImageName", "couldn't parse image"), "InvalidImageName", []string{badImage}},
		"not ready for ok": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}, "", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create(f.app())
			f.deployment()
			stuck := func(app *slipwayv1alpha1.WebApp) error {
				if tc.reason == "" {
					return has(app, slipwayv1alpha1.ConditionDegraded, metav1.ConditionFalse, "")
				}
				if err := has(app, slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, tc.reason); err != nil {
					return err
				}
				return has(app, slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, tc.reason)
			}
			environment.Eventually(t, func() error { return f.cluster.Stick(t.Context(), f.namespace, "shop", tc.status) })
			start := time.Now()
			app := f.wait(stuck)
			t.Logf("named after %v: %s", time.Since(start).Round(time.Millisecond), meta.FindStatusCondition(app.Status.Conditions, "Ready").Message)
			for _, part := range tc.says {
				if message := meta.FindStatusCondition(app.Status.Conditions, "Degraded").Message; !strings.Contains(message, part) {
					t.Errorf("the message %q does not say %q", message, part)
				}
			}
			f.rollOut()
			f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionFalse, slipwayv1alpha1.ReasonAsExpected)
		})
	}
}

func TestPodsThatCannotBeCreatedAreNamed(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.quota("4", "4")
	f.create(f.app())
	f.deployment()
	environment.Eventually(t, func() error {
		return f.cluster.RefusePods(t.Context(), f.namespace, "shop",
			`pods "shop-5d9-x7k" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4`)
	})
	app := f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, "QuotaExceeded")
	want := `Deployment "shop" cannot create its pods: ResourceQuota "team" does not allow it: pods=1 is asked for (spec.replicas) and 4 of 4 is used`
	if got := meta.FindStatusCondition(app.Status.Conditions, "Degraded").Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

// goodThenBad rolls out a good image and starts a bad one, which hangs.
func (f *fixture) goodThenBad(change ...func(*slipwayv1alpha1.WebApp)) *slipwayv1alpha1.WebApp {
	f.Helper()
	app := f.running(change...)
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = badImage })
	f.deployed(runsImage(badImage))
	return app
}

func (f *fixture) stick(status corev1.PodStatus) {
	f.Helper()
	environment.Eventually(f, func() error { return f.cluster.Stick(f.Context(), f.namespace, "shop", status) })
}

func TestAFailedRolloutReturnsToTheLastGoodRevision(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.goodThenBad()
	f.stick(imageNotFound())
	start := time.Now()
	f.deployed(runsImage(goodImage))
	t.Logf("rolled back %v after the terminal reason", time.Since(start).Round(time.Millisecond))
	f.waitFor(slipwayv1alpha1.ConditionProgressing, metav1.ConditionTrue, slipwayv1alpha1.ReasonRollingBack)

	environment.Eventually(t, func() error { return f.cluster.RollOut(t.Context(), f.namespace, "shop") })
	f.waitFor(slipwayv1alpha1.ConditionProgressing, metav1.ConditionFalse, slipwayv1alpha1.ReasonRolledBack)
	rolledBack := f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, "ImageNotFound")
	for conditionType, status := range map[string]metav1.ConditionStatus{
		"Ready": metav1.ConditionFalse, "Available": metav1.ConditionTrue, "Stalled": metav1.ConditionTrue, "Degraded": metav1.ConditionTrue,
	} {
		if err := has(rolledBack, conditionType, status, ""); err != nil {
			t.Error(err)
		}
	}
	if rolledBack.Spec.Image != badImage || rolledBack.Status.Image != goodImage {
		t.Errorf("spec says %q and status %q", rolledBack.Spec.Image, rolledBack.Status.Image)
	}

	// Another number of pods is no reason to try the failed revision again.
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Replicas = ptr[int32](2) })
	f.deployed(func(d *appsv1.Deployment) error { return equal(int32(2), *d.Spec.Replicas) })
	environment.Eventually(t, func() error { return f.cluster.RollOut(t.Context(), f.namespace, "shop") })
	if err := runsImage(goodImage)(f.settle()); err != nil {
		t.Error(err)
	}

	// A good edit recovers.
	f.rollOutImage(app, "registry.example.com/shop:2")
	f.wait(func(a *slipwayv1alpha1.WebApp) error {
		if a.Status.Rollback != nil || meta.FindStatusCondition(a.Status.Conditions, "RolledBack") != nil || meta.FindStatusCondition(a.Status.Conditions, "Stalled") != nil {
			return fmt.Errorf("still rolled back: %+v", a.Status)
		}
		return nil
	})
}

// Crashing between the decision and its execution, or right after, changes nothing.
func TestARollbackSurvivesARestart(t *testing.T) {
	operator := env.StartOperator(t, nil)
	f := newFixture(t)
	f.goodThenBad()
	f.stick(imageNotFound())
	f.deployed(runsImage(goodImage))
	operator.Stop(t)
	env.StartOperator(t, nil)
	environment.Eventually(t, func() error { return f.cluster.RollOut(t.Context(), f.namespace, "shop") })
	f.waitFor(slipwayv1alpha1.ConditionProgressing, metav1.ConditionFalse, slipwayv1alpha1.ReasonRolledBack)
	if err := runsImage(goodImage)(f.settle()); err != nil {
		t.Error(err)
	}
}

func TestARolloutThatMissesItsDeadlineReturns(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.goodThenBad(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Rollout = &slipwayv1alpha1.Rollout{ProgressDeadlineSeconds: ptr[int32](2)}
	})
	f.stick(corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}})
	f.deployed(runsImage(goodImage))
	f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, slipwayv1alpha1.ReasonProbeFailing)
}

func TestHoldReportsAndStops(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.goodThenBad(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Rollout = &slipwayv1alpha1.Rollout{OnFailure: slipwayv1alpha1.FailurePolicyHold}
	})
	f.stick(imageNotFound())
	f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonRolloutFailed)
	if err := runsImage(badImage)(f.settle()); err != nil {
		t.Error(err)
	}
	// Somebody pushes the image: it was a failure, and is none any more.
	f.rollOut()
}

func TestTheFirstRevisionHasNothingToReturnTo(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.create(f.app())
	f.stick(imageNotFound())
	f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonRolloutFailed)
	f.rollOut()
}

func TestAGoodRevisionThatDegradesLaterIsNotRolledBack(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.running()
	f.rollOutImage(app, "registry.example.com/shop:2")

	f.stick(imageNotFound())
	degraded := f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, "ImageNotFound")
	if degraded.Status.Rollback != nil {
		t.Errorf("rolled back: %+v", degraded.Status.Rollback)
	}
	if err := runsImage("registry.example.com/shop:2")(f.settle()); err != nil {
		t.Error(err)
	}
}

func TestFiveGoodRevisionsAreKept(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.running()
	for version := 2; version <= 8; version++ {
		image := fmt.Sprintf("registry.example.com/shop:%d", version)
		f.rollOutImage(app, image)
	}
	environment.Eventually(t, func() error {
		revisions := &appsv1.ControllerRevisionList{}
		if err := env.Client.List(t.Context(), revisions, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		var numbers []int64
		for _, revision := range revisions.Items {
			numbers = append(numbers, revision.Revision)
		}
		if len(numbers) != 5 {
			return fmt.Errorf("revisions %v, want five", numbers)
		}
		return nil
	})
}

func TestAnAutoscalerTakesOverAndHandsBackWithoutADip(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.app(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Replicas = ptr[int32](4)
		a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("100m")}}
	})
	seen := f.recordReplicas()
	f.create(app)
	f.deployment()
	f.rollOut()
	update(f, app, func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: ptr[int32](2), MaxReplicas: 10}
	})
	f.deployed(func(d *appsv1.Deployment) error { return ownerOfReplicas(d, "slipway-webapp-handover") })
	scale(f, 7)
	f.settle()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Autoscaling = nil })
	f.deployed(func(d *appsv1.Deployment) error { return equal(int32(4), *d.Spec.Replicas) })
	f.settle()
	if diff := cmp.Diff([]int32{4, 7, 4}, seen()); diff != "" {
		t.Errorf("replicas over time (-want +got):\n%s", diff)
	}
}

// Without its label the operator's cache does not show a Deployment. It must not be
// taken for one that does not exist.
func TestAnAutoscaledDeploymentKeepsItsPodsWhenItsLabelIsRemoved(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	seen := f.recordReplicas()
	f.create(f.app(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("100m")}}
		a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: ptr[int32](2), MaxReplicas: 10}
	}))
	f.deployed(func(d *appsv1.Deployment) error { return ownerOfReplicas(d, "slipway-webapp-handover") })
	scale(f, 7)
	f.settle()
	update(f, f.deployment(), func(d *appsv1.Deployment) { delete(d.Labels, slipwayv1alpha1.LabelManagedBy) })
	f.deployed(func(d *appsv1.Deployment) error {
		return equal(slipwayv1alpha1.ManagedBySlipway, d.Labels[slipwayv1alpha1.LabelManagedBy])
	})
	f.settle()
	if diff := cmp.Diff([]int32{2, 7}, seen()); diff != "" {
		t.Errorf("replicas over time (-want +got):\n%s", diff)
	}
}

// Two specs may lead to one pod template, here by writing a default out.
func TestAGoodRevisionInAnotherSpellingIsGood(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.running(func(a *slipwayv1alpha1.WebApp) { a.Spec.Health = &slipwayv1alpha1.HealthCheck{Path: "/h"} })
	f.rollOutImage(app, "registry.example.com/shop:2")
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image, a.Spec.Health.PeriodSeconds = goodImage, ptr[int32](5) })
	f.deployed(runsImage(goodImage))
	f.rollOut()
	f.settle()
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// rollOutNow rolls out an image with pods that become ready now, and waits until the WebApp says that it is ready, and that the
// rollout is not over.
func (f *fixture) rollOutNow(app *slipwayv1alpha1.WebApp, image string, minReadySeconds int32) {
	f.Helper()
	update(f, app, func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Image, a.Spec.Rollout = image, &slipwayv1alpha1.Rollout{MinReadySeconds: &minReadySeconds}
	})
	f.deployed(runsImage(image))
	environment.Eventually(f, func() error { return f.cluster.RollOutNow(f.Context(), f.namespace, "shop") })
	f.wait(func(a *slipwayv1alpha1.WebApp) error {
		if a.Status.Rollout == nil || a.Status.Rollout.Revision != a.Status.Revision || a.Status.LastGoodRevision == a.Status.Revision {
			return fmt.Errorf("the revision is said to be good at once: %+v", a.Status)
		}
		return has(a, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady)
	})
}

func isLastGood(a *slipwayv1alpha1.WebApp) error {
	if a.Status.LastGoodRevision != a.Status.Revision || a.Status.Rollout != nil {
		return fmt.Errorf("revision %q runs, %q is the last good one, rollout is %+v", a.Status.Revision, a.Status.LastGoodRevision, a.Status.Rollout)
	}
	return nil
}

// Nothing happens to the pods any more: the operator looks again by itself, one that is started meanwhile too.
func TestARevisionBecomesTheLastGoodOneWhenItsPodsHaveBeenReadyForLong(t *testing.T) {
	for name, restart := range map[string]bool{"the operator goes on": false, "another operator goes on": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			operator := env.StartOperator(t, nil, f.namespace)
			app := f.running()
			start := time.Now()
			f.rollOutNow(app, "registry.example.com/shop:2", 6)
			if restart {
				operator.Stop(t)
				env.StartOperator(t, nil, f.namespace)
			}
			f.wait(isLastGood)
			if took := time.Since(start); took < 6*time.Second {
				t.Errorf("the revision is good after %v", took)
			}
		})
	}
}

func TestARolloutThatFailsIsRolledBackToWhatWasReadyForLong(t *testing.T) {
	f := newFixture(t)
	env.StartOperator(t, nil, f.namespace)
	app := f.running()
	first := f.wait(isLastGood).Status.Revision
	f.rollOutNow(app, "registry.example.com/shop:2", 3600)
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = badImage })
	f.deployed(runsImage(badImage))
	f.stick(imageNotFound())
	f.deployed(runsImage(goodImage))
	rolledBack := f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, "ImageNotFound")
	if to := rolledBack.Status.Rollback.ToRevision; to != first {
		t.Errorf("rolled back to %q, want %q", to, first)
	}
}

// A revision whose pods crash soon after they were ready has failed like one whose pods never were.
func TestARevisionThatCrashesSoonAfterItIsReadyIsRolledBack(t *testing.T) {
	f := newFixture(t)
	env.StartOperator(t, nil, f.namespace)
	app := f.running()
	f.rollOutNow(app, badImage, 3600)
	crash := waitingContainer("CrashLoopBackOff", "back-off 10s restarting failed container")
	crash.ContainerStatuses[0].RestartCount = 3
	crash.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, Message: "cannot open database"}
	f.stick(crash)
	f.deployed(runsImage(goodImage))
	f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, "CrashLoopBackOff")
}
