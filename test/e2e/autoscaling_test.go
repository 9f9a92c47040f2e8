//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// The cluster measures no CPU use, so the autoscaler only keeps to its bounds, and status
// says so.
func TestReplicasAreHandedToAnAutoscalerAndBackWithoutADip(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	seen := f.Record(&appsv1.DeploymentList{})
	f.Create(f.app(replicas(3), cpu("10m")))
	f.ready()
	load := f.traffic(f.serviceURL())

	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Autoscaling = autoscaling(2, 5) })
	f.autoscaled(2, 5)
	f.servesUnscaled("3/3")
	f.scaledByHand(4)
	f.forceReconcile()
	f.servesUnscaled("4/4")
	if got := *f.deployment().Spec.Replicas; got != 4 {
		t.Errorf("the autoscaler's 4 replicas became %d", got)
	}

	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Autoscaling = nil })
	f.Gone(appName, &autoscalingv2.HorizontalPodAutoscaler{})
	f.replicasAre(3)
	f.ready()
	load.Stop("to an autoscaler and back")
	for _, s := range seen.All() {
		if got := *s.Object.(*appsv1.Deployment).Spec.Replicas; got < 3 {
			t.Errorf("the Deployment asked for %d pods for a moment, want never fewer than 3", got)
		}
	}
}

func TestAnAutoscaledApplicationStartsWithItsLowerBound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	seen := f.Record(&appsv1.DeploymentList{})
	f.Create(f.app(cpu("10m"), spec(func(s *slipwayv1alpha1.WebAppSpec) { s.Autoscaling = autoscaling(3, 5) })))
	f.autoscaled(3, 5)
	f.servesUnscaled("3/3")
	// A changed bound is a matter between the autoscaler and the Deployment.
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Autoscaling = autoscaling(4, 5) })
	f.replicasAre(4)
	f.servesUnscaled("4/4")
	for _, s := range seen.All() {
		if got := *s.Object.(*appsv1.Deployment).Spec.Replicas; got < 3 {
			t.Errorf("the Deployment asked for %d pods for a moment, want never fewer than 3", got)
		}
	}
}

// autoscaled waits for an autoscaler with these bounds that has looked at the
// Deployment.
func (f *fixture) autoscaled(least, most int32) {
	f.Helper()
	f.Eventually(func() error {
		autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := f.Get(appName, autoscaler); err != nil {
			return err
		}
		if *autoscaler.Spec.MinReplicas != least || autoscaler.Spec.MaxReplicas != most {
			return fmt.Errorf("the autoscaler's bounds are %d and %d", *autoscaler.Spec.MinReplicas, autoscaler.Spec.MaxReplicas)
		}
		if len(autoscaler.Status.Conditions) == 0 {
			return fmt.Errorf("the autoscaler has not looked at the Deployment")
		}
		return nil
	})
}

// servesUnscaled waits until the application serves with that many replicas of those asked
// for, and says that its autoscaler cannot scale it and that nothing else is wrong.
func (f *fixture) servesUnscaled(replicas string) {
	f.Helper()
	failing := slipwayv1alpha1.ReasonAutoscalerFailing
	f.wait(
		is(slipwayv1alpha1.ConditionAvailable, metav1.ConditionTrue, ""),
		is(slipwayv1alpha1.ConditionProgressing, metav1.ConditionFalse, slipwayv1alpha1.ReasonRolloutComplete),
		is(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, failing),
		has(slipwayv1alpha1.ConditionDegraded, failing, appName, "spec.autoscaling"),
		lacks(slipwayv1alpha1.ConditionStalled),
		func(app *slipwayv1alpha1.WebApp) error {
			if got := app.Status.Summary.Replicas; got != replicas {
				return fmt.Errorf("replicas %q, want %q", got, replicas)
			}
			return nil
		},
	)
}

// scaledByHand changes the number of pods as an autoscaler does.
func (f *fixture) scaledByHand(n int32) {
	f.Helper()
	f.Kubectl("scale", "deployment/"+appName, fmt.Sprintf("--replicas=%d", n))
}

func (f *fixture) replicasAre(n int32) {
	f.Helper()
	f.Eventually(func() error {
		if got := *f.deployment().Spec.Replicas; got != n {
			return fmt.Errorf("the Deployment asks for %d pods, want %d", got, n)
		}
		return nil
	})
}

func autoscaling(least, most int32) *slipwayv1alpha1.Autoscaling {
	return &slipwayv1alpha1.Autoscaling{MinReplicas: &least, MaxReplicas: most}
}

func cpu(request string) func(*slipwayv1alpha1.WebApp) {
	return spec(func(s *slipwayv1alpha1.WebAppSpec) {
		s.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(request)}}
	})
}
