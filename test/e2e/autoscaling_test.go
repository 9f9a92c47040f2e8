//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// The cluster measures no CPU use, so the autoscaler only keeps to its bounds.
func TestReplicasAreHandedToAnAutoscalerAndBackWithoutADip(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	seen := f.record(&appsv1.DeploymentList{})
	f.create(f.app(replicas(3), cpu("10m")))
	f.ready()
	load := f.traffic(f.serviceURL())

	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Autoscaling = autoscaling(2, 5) })
	f.autoscaled(2, 5)
	f.ready()
	f.scaledByHand(4)
	f.forcePass()
	if got := *f.deployment().Spec.Replicas; got != 4 {
		t.Errorf("the autoscaler's 4 replicas became %d", got)
	}

	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Autoscaling = nil })
	f.gone(appName, &autoscalingv2.HorizontalPodAutoscaler{})
	f.replicasAre(3)
	f.ready()
	load.stop("to an autoscaler and back")
	for _, s := range seen.all() {
		if got := *s.object.(*appsv1.Deployment).Spec.Replicas; got < 3 {
			t.Errorf("the Deployment asked for %d pods for a moment, want never fewer than 3", got)
		}
	}
}

func TestAnAutoscaledApplicationStartsWithItsLowerBound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	seen := f.record(&appsv1.DeploymentList{})
	f.create(f.app(cpu("10m"), spec(func(s *slipwayv1alpha1.WebAppSpec) { s.Autoscaling = autoscaling(3, 5) })))
	f.autoscaled(3, 5)
	app := f.ready()
	if app.Status.Summary.Replicas != "3/3" {
		t.Errorf("replicas %q, want 3/3", app.Status.Summary.Replicas)
	}
	// A changed bound is a matter between the autoscaler and the Deployment.
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Autoscaling = autoscaling(4, 5) })
	f.replicasAre(4)
	f.ready()
	for _, s := range seen.all() {
		if got := *s.object.(*appsv1.Deployment).Spec.Replicas; got < 3 {
			t.Errorf("the Deployment asked for %d pods for a moment, want never fewer than 3", got)
		}
	}
}

// autoscaled waits for an autoscaler with these bounds that has looked at the
// Deployment.
func (f *fixture) autoscaled(least, most int32) {
	f.Helper()
	f.eventually(func() error {
		autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := f.get(appName, autoscaler); err != nil {
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

// scaledByHand changes the number of pods as an autoscaler does.
func (f *fixture) scaledByHand(n int32) {
	f.Helper()
	f.kubectl("scale", "deployment/"+appName, fmt.Sprintf("--replicas=%d", n))
}

func (f *fixture) replicasAre(n int32) {
	f.Helper()
	f.eventually(func() error {
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
