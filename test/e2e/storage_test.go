//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/watch"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

func TestStorageIsMountedAndSurvivesTheApplication(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.app(storage("10Mi", ""))
	f.Create(app)
	f.ready()
	claim := f.claimInUse()
	pods := f.Record(&corev1.PodList{})

	// Two pods never share the volume: the old one is gone before the new one comes.
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Env["GREETING"] = "two" })
	f.ready()
	f.answers(f.serviceURL()+"/config", "env: two")
	if strategy := f.deployment().Spec.Strategy.Type; strategy != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("strategy %q, want Recreate", strategy)
	}
	running := map[string]bool{}
	for _, s := range pods.All() {
		pod := s.Object.(*corev1.Pod)
		running[pod.Name] = s.Event != watch.Deleted && pod.Status.Phase == corev1.PodRunning
		if both := slices.Collect(trueKeys(running)); len(both) > 1 {
			t.Errorf("pods %v ran at the same time", both)
		}
	}

	f.Delete(app)
	f.Gone(appName, &appsv1.Deployment{})
	f.empty(&corev1.PodList{})
	kept := mustGet(f, claim.Name, &corev1.PersistentVolumeClaim{})
	if kept.UID != claim.UID || !kept.DeletionTimestamp.IsZero() {
		t.Fatal("the volume did not survive the application")
	}

	f.Create(f.app(storage("10Mi", "")))
	f.ready()
	if again := f.claimInUse(); again.UID != claim.UID {
		t.Error("an application of the same name did not get the volume back")
	}
}

func TestStorageGoesWithTheApplicationWhenAsked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.app(storage("10Mi", slipwayv1alpha1.DeletionPolicyDelete))
	f.Create(app)
	f.ready()
	claim := f.claimInUse()
	f.Delete(app)
	f.Gone(claim.Name, &corev1.PersistentVolumeClaim{})
}

// The old pod has to go before the new one can come, so there is an outage, and it
// must not outlast the verdict.
func TestARolloutWithStorageThatFailsIsRolledBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app(storage("10Mi", slipwayv1alpha1.DeletionPolicyDelete), env("GREETING", "good")))
	good := f.good()
	bad := badRollouts()["image name that cannot be parsed"]
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { bad.edit(f, s) })
	f.rolledBack(good, bad)
	f.answers(f.serviceURL()+"/config", "env: good")
	f.staysRolledBack()
}

// claimInUse waits until the claim is bound, and checks that the pod has it mounted.
func (f *fixture) claimInUse() *corev1.PersistentVolumeClaim {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	f.Eventually(func() error {
		if err := f.Get(appName+"-data", claim); err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("the claim is %s", claim.Status.Phase)
		}
		return nil
	})
	f.Eventually(func() error {
		for _, pod := range f.pods() {
			uses := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
			})
			mounts := slices.ContainsFunc(pod.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.MountPath == "/data" && !m.ReadOnly
			})
			if uses && mounts && pod.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return errors.New("no pod runs with the volume mounted")
	})
	return claim
}

func storage(size string, policy slipwayv1alpha1.DeletionPolicy) func(*slipwayv1alpha1.WebApp) {
	return spec(func(s *slipwayv1alpha1.WebAppSpec) {
		s.Storage = &slipwayv1alpha1.Storage{Size: resource.MustParse(size), MountPath: "/data", DeletionPolicy: policy}
	})
}

// trueKeys yields the keys whose value is true.
func trueKeys(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key, value := range m {
			if value && !yield(key) {
				return
			}
		}
	}
}
