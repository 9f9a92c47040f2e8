//go:build apitest

package webapp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestAWebAppOfThreeLinesBecomesReady(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.create(f.app())
	f.deployed(runsImage("registry.example.com/shop:1"))
	environment.Eventually(t, func() error { return f.get("shop", &corev1.Service{}) })
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonRolloutInProgress)

	f.rollOut()

	app := f.waitFor(slipwayv1alpha1.ConditionAvailable, metav1.ConditionTrue, slipwayv1alpha1.ReasonReplicasReady)
	got := app.Status
	want := slipwayv1alpha1.WebAppStatus{
		ObservedGeneration: 1, Replicas: 1, ReadyReplicas: 1,
		Selector:         "slipway.dev/webapp=shop",
		ServiceURL:       "http://shop." + f.namespace + ".svc.cluster.local:8080",
		Image:            "registry.example.com/shop:1",
		Revision:         got.LastGoodRevision,
		LastGoodRevision: got.LastGoodRevision,
		Summary:          slipwayv1alpha1.WebAppSummary{Replicas: "1/1"},
		Conditions:       got.Conditions,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.LastGoodRevision == "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	var types []string
	for _, c := range got.Conditions {
		types = append(types, c.Type)
	}
	if diff := cmp.Diff([]string{"Ready", "Available", "Progressing", "Degraded"}, types); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// Every field of the spec reaches the child that it is about, when it is changed as
// well as when it is removed again.
func TestEveryFieldReachesItsChild(t *testing.T) {
	env.StartOperator(t, nil)
	tests := map[string]struct {
		change func(*slipwayv1alpha1.WebAppSpec)
		want   func(f *fixture, d *appsv1.Deployment) error
	}{
		"image": {
			func(s *slipwayv1alpha1.WebAppSpec) { s.Image = "other:2" },
			func(_ *fixture, d *appsv1.Deployment) error { return equal("other:2", container(d).Image) },
		},
		"replicas": {
			func(s *slipwayv1alpha1.WebAppSpec) { s.Replicas = ptr[int32](3) },
			func(f *fixture, d *appsv1.Deployment) error {
				if err := f.get("shop", &policyv1.PodDisruptionBudget{}); err != nil {
					return err
				}
				return equal(int32(3), *d.Spec.Replicas)
			},
		},
		"no replicas": {
			func(s *slipwayv1alpha1.WebAppSpec) { s.Replicas = ptr[int32](0) },
			func(_ *fixture, d *appsv1.Deployment) error { return equal(int32(0), *d.Spec.Replicas) },
		},
		"port": {
			func(s *slipwayv1alpha1.WebAppSpec) { s.Port = 9090 },
			func(f *fixture, d *appsv1.Deployment) error {
				service := &corev1.Service{}
				if err := f.get("shop", service); err != nil {
					return err
				}
				return equal([]int32{9090, 9090}, []int32{container(d).Ports[0].ContainerPort, service.Spec.Ports[0].Port})
			},
		},
		"env": {
			func(s *slipwayv1alpha1.WebAppSpec) {
				s.Env = map[string]slipwayv1alpha1.EnvValue{"B": "2", "A": "1", "C": "3"}
			},
			func(_ *fixture, d *appsv1.Deployment) error {
				return equal([]corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "C", Value: "3"}}, container(d).Env)
			},
		},
		"command and args": {
			func(s *slipwayv1alpha1.WebAppSpec) { s.Command, s.Args = []string{"/run"}, []string{"-v", "-x"} },
			func(_ *fixture, d *appsv1.Deployment) error {
				return equal([]string{"/run", "-v", "-x"}, append(container(d).Command, container(d).Args...))
			},
		},
		"resources": {
			func(s *slipwayv1alpha1.WebAppSpec) {
				s.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("0.1")}}
			},
			func(_ *fixture, d *appsv1.Deployment) error {
				cpu := container(d).Resources.Requests[corev1.ResourceCPU]
				return equal("100m", cpu.String())
			},
		},
		"health": {
			func(s *slipwayv1alpha1.WebAppSpec) {
				s.Health = &slipwayv1alpha1.HealthCheck{Path: "/ready", PeriodSeconds: ptr[int32](7)}
			},
			func(_ *fixture, d *appsv1.Deployment) error {
				probe := container(d).ReadinessProbe
				if probe.HTTPGet == nil || probe.TCPSocket != nil {
					return fmt.Errorf("the probe is %+v", probe)
				}
				return equal([]any{"/ready", int32(7)}, []any{probe.HTTPGet.Path, probe.PeriodSeconds})
			},
		},
		"rollout": {
			func(s *slipwayv1alpha1.WebAppSpec) {
				s.Rollout = &slipwayv1alpha1.Rollout{ProgressDeadlineSeconds: ptr[int32](77)}
			},
			func(_ *fixture, d *appsv1.Deployment) error { return equal(int32(77), *d.Spec.ProgressDeadlineSeconds) },
		},
		"imagePullSecrets": {
			func(s *slipwayv1alpha1.WebAppSpec) {
				s.ImagePullSecrets = []slipwayv1alpha1.LocalReference{{Name: "registry"}}
			},
			func(_ *fixture, d *appsv1.Deployment) error {
				return equal([]corev1.LocalObjectReference{{Name: "registry"}}, d.Spec.Template.Spec.ImagePullSecrets)
			},
		},
		"serviceAccountName": {
			func(s *slipwayv1alpha1.WebAppSpec) { s.ServiceAccountName = "robot" },
			func(_ *fixture, d *appsv1.Deployment) error {
				return equal([]any{"robot", true}, []any{d.Spec.Template.Spec.ServiceAccountName, *d.Spec.Template.Spec.AutomountServiceAccountToken})
			},
		},
		"autoscaling": {
			func(s *slipwayv1alpha1.WebAppSpec) {
				s.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}
				s.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: ptr[int32](2), MaxReplicas: 6, CPUPercent: ptr[int32](70)}
			},
			func(f *fixture, _ *appsv1.Deployment) error {
				autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
				if err := f.get("shop", autoscaler); err != nil {
					return err
				}
				spec := autoscaler.Spec
				return equal([]int32{2, 6, 70}, []int32{*spec.MinReplicas, spec.MaxReplicas, *spec.Metrics[0].Resource.Target.AverageUtilization})
			},
		},
		"storage": {
			func(s *slipwayv1alpha1.WebAppSpec) {
				s.Storage = &slipwayv1alpha1.Storage{Size: resource.MustParse("1Gi"), MountPath: "/data"}
			},
			func(f *fixture, d *appsv1.Deployment) error {
				if err := f.get("shop-data", &corev1.PersistentVolumeClaim{}); err != nil {
					return err
				}
				mounts := []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
				return equal([]any{mounts, appsv1.RecreateDeploymentStrategyType}, []any{container(d).VolumeMounts, d.Spec.Strategy.Type})
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create(f.app())
			before := f.deployed(runsImage("registry.example.com/shop:1"))

			app := f.app()
			update(f, app, func(a *slipwayv1alpha1.WebApp) { tc.change(&a.Spec) })
			f.deployed(func(d *appsv1.Deployment) error { return tc.want(f, d) })

			update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec = f.app().Spec })
			f.deployed(func(d *appsv1.Deployment) error { return equal(before.Spec, d.Spec) })
			for _, child := range []client.Object{&autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{}} {
				environment.Eventually(t, func() error { return gone(f.get("shop", child)) })
			}
		})
	}
}

func TestAPausedWebAppIsLeftAlone(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.running()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Paused, a.Spec.Image = true, "other:2" })
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonPaused)
	if err := runsImage("registry.example.com/shop:1")(f.settle()); err != nil {
		t.Error(err)
	}
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Paused = false })
	f.deployed(runsImage("other:2"))
}

// The data of a deleted application is kept and found again, unless it was to go too.
func TestStorageOutlivesTheWebAppUnlessAskedOtherwise(t *testing.T) {
	env.StartOperator(t, nil)
	for policy, owners := range map[slipwayv1alpha1.DeletionPolicy]int{
		slipwayv1alpha1.DeletionPolicyRetain: 0,
		slipwayv1alpha1.DeletionPolicyDelete: 1,
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			app := f.app(func(a *slipwayv1alpha1.WebApp) {
				a.Spec.Storage = &slipwayv1alpha1.Storage{Size: resource.MustParse("1Gi"), MountPath: "/data", DeletionPolicy: policy}
			})
			f.create(app)
			claim := &corev1.PersistentVolumeClaim{}
			environment.Eventually(t, func() error { return f.get("shop-data", claim) })
			if len(claim.OwnerReferences) != owners {
				t.Errorf("the volume has owners %v, want %d", claim.OwnerReferences, owners)
			}
			if policy == slipwayv1alpha1.DeletionPolicyDelete {
				return
			}
			// No garbage collector runs here: what the WebApp owns is deleted by hand.
			f.deployment()
			f.settle()
			f.delete(app)
			f.create(f.app(func(a *slipwayv1alpha1.WebApp) { a.Spec.Storage = app.Spec.Storage }))
			// Until then the operator would recreate what the deleted application lacks.
			f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonTerminating)
			for _, revision := range f.revisions() {
				f.delete(&revision)
			}
			for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
				child.SetName("shop")
				child.SetNamespace(f.namespace)
				f.delete(child)
			}
			f.deployment()
			f.rollOut()
			found := &corev1.PersistentVolumeClaim{}
			if err := f.get("shop-data", found); err != nil || found.UID != claim.UID {
				t.Errorf("the volume is %v (%v), want %v", found.UID, err, claim.UID)
			}
		})
	}
}

func container(d *appsv1.Deployment) corev1.Container { return d.Spec.Template.Spec.Containers[0] }

func equal(want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("-want +got:\n%s", diff)
	}
	return nil
}

func gone(err error) error {
	if err == nil {
		return errors.New("still there")
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
