//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

const (
	// healGoal is how long a child may be missing, or other than desired.
	healGoal = 250 * time.Millisecond
	// healTries is how often a child is deleted and changed.
	healTries = 25
)

// It runs alone: it measures.
func TestDriftIsUndoneAtOnce(t *testing.T) {
	f := newFixture(t)
	// Without pods, so that only the operator is measured.
	f.Create(f.app(replicas(0)))
	f.ready()
	for _, child := range []struct {
		kind   string
		object client.Object
		list   client.ObjectList
	}{
		{"Deployment", &appsv1.Deployment{}, &appsv1.DeploymentList{}},
		{"Service", &corev1.Service{}, &corev1.ServiceList{}},
	} {
		seen := f.Record(child.list)
		var back, restored []time.Duration
		for range healTries {
			start := time.Now()
			f.Delete(mustGet(f, appName, child.object))
			deleted := seen.First(start, "deleted", func(s livetest.Sighting) bool { return s.Event == watch.Deleted })
			added := seen.First(deleted.At, "added", func(s livetest.Sighting) bool { return s.Event == watch.Added })
			back = append(back, added.At.Sub(deleted.At))

			start = time.Now()
			update(f, child.object, func(o client.Object) { o.GetLabels()[slipwayv1alpha1.LabelName] = "drift" })
			changed := seen.First(start, "changed", labelled("drift"))
			again := seen.First(changed.At, "restored", labelled(appName))
			restored = append(restored, again.At.Sub(changed.At))
		}
		f.heals("a deleted "+child.kind+" is back", back)
		f.heals("a changed "+child.kind+" is restored", restored)
	}
	f.ready()
}

// heals publishes how long it took, and compares it with the goal. The slowest tenth
// is left to a busy machine.
func (f *fixture) heals(what string, took []time.Duration) {
	f.Helper()
	f.Measured("%s after %v (median), %v (slowest of %d)", what, percentile(took, 50), percentile(took, 100), len(took))
	if p90 := percentile(took, 90); p90 > healGoal {
		f.Errorf("%s after %v (90th percentile), want at most %v", what, p90, healGoal)
	}
}

func labelled(name string) func(livetest.Sighting) bool {
	return func(s livetest.Sighting) bool {
		return s.Event == watch.Modified && s.Object.GetLabels()[slipwayv1alpha1.LabelName] == name
	}
}

func TestADeletedDeploymentServesAgainByItself(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app())
	before := f.ready()
	f.Delete(f.deployment())
	f.Eventually(func() error { return f.Get(appName, &appsv1.Deployment{}) })
	after := f.ready()
	f.answers(f.serviceURL(), "Hello from")
	if after.Status.Revision != before.Status.Revision {
		t.Errorf("revision %q came back, want %q", after.Status.Revision, before.Status.Revision)
	}
}

func TestAChangeByHandOfWhatTheOperatorStatesIsUndone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app(replicas(2)))
	f.ready()
	load := f.traffic(f.serviceURL())

	f.Kubectl("set", "image", "deployment/"+appName, "app=registry.invalid/other:1")
	f.Eventually(func() error {
		if got := f.deployment().Spec.Template.Spec.Containers[0].Image; got != cluster.DemoImage {
			return fmt.Errorf("the Deployment runs %q", got)
		}
		return nil
	})
	f.Kubectl("scale", "deployment/"+appName, "--replicas=5")
	f.Eventually(func() error {
		if got := *f.deployment().Spec.Replicas; got != 2 {
			return fmt.Errorf("the Deployment asks for %d pods", got)
		}
		return nil
	})
	f.ready()
	load.Stop("a wrong image and a wrong number of pods, undone")

	f.Kubectl("patch", "service", appName, "--type=json", `-p=[{"op":"replace","path":"/spec/ports/0/targetPort","value":1}]`)
	f.Eventually(func() error {
		if got := mustGet(f, appName, &corev1.Service{}).Spec.Ports[0].TargetPort.String(); got != "http" {
			return fmt.Errorf("the Service leads to port %s", got)
		}
		return nil
	})
	f.answers(f.serviceURL(), "Hello from")
}

func TestWhatOthersStateSurvives(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app())
	f.ready()
	f.Kubectl("annotate", "deployment/"+appName, "mesh.example.com/inject=yes")
	f.Kubectl("annotate", "service/"+appName, "mesh.example.com/export=yes")
	f.Kubectl("label", "service/"+appName, "team=shop")

	first := f.thePod().Name
	f.Kubectl("rollout", "restart", "deployment/"+appName)
	f.Kubectl("rollout", "status", "deployment/"+appName, "--timeout=60s")
	f.Eventually(func() error {
		if pods := f.pods(); len(pods) != 1 || pods[0].Name == first {
			return errors.New("the pod has not been replaced")
		}
		return nil
	})
	f.ready()
	f.forceReconcile()

	deployment, service := f.deployment(), mustGet(f, appName, &corev1.Service{})
	if deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Error("the annotation of kubectl rollout restart is gone")
	}
	if deployment.Annotations["mesh.example.com/inject"] != "yes" || service.Annotations["mesh.example.com/export"] != "yes" || service.Labels["team"] != "shop" {
		t.Errorf("annotations and labels of others are gone: %v, %v, %v", deployment.Annotations, service.Annotations, service.Labels)
	}
}

func TestAForeignObjectOfTheSameNameIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	for _, foreign := range []client.Object{
		&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		foreignDeployment(),
	} {
		kind := map[bool]string{true: "Service", false: "Deployment"}[isService(foreign)]
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			foreign.SetName(appName)
			f.Create(foreign)
			if !isService(foreign) {
				// Its own controller writes its status once.
				f.Kubectl("wait", "--for=jsonpath={.status.observedGeneration}=1", "deployment/"+appName)
			}
			before := f.raw(kind)
			f.Create(f.app())
			named := fmt.Sprintf("%s %q", kind, appName)
			f.wait(has(slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ReasonNameConflict, named),
				is(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonNameConflict))

			// An edit makes the operator try again, and be refused again.
			f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Env["MESSAGE"] = "again" })
			f.wait(has(slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ReasonNameConflict, named))
			if after := f.raw(kind); after != before {
				t.Errorf("the foreign object was changed.\nbefore: %s\nafter: %s", before, after)
			}

			f.Delete(foreign)
			app := f.ready()
			if err := lacks(slipwayv1alpha1.ConditionStalled)(app); err != nil {
				t.Error(err)
			}
			f.answers(f.serviceURL(), "again")
		})
	}
}

func isService(object client.Object) bool {
	_, ok := object.(*corev1.Service)
	return ok
}

// raw returns an object as the API server has it, to the last byte.
func (f *fixture) raw(kind string) string {
	f.Helper()
	return f.Kubectl("get", kind, appName, "-o", "json", "--show-managed-fields")
}

// foreignDeployment runs nothing, and its controller has nothing to say of it after
// the first look.
func foreignDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "foreign"}
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: ptr(int32(0)),
		Paused:   true,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "registry.invalid/x:1"}}},
		},
	}}
}

// percentile returns the p-th percentile (0 to 100) of durations.
func percentile(durations []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[(len(sorted)-1)*p/100].Round(100 * time.Microsecond)
}
