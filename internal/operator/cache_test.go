package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

func TestTheCacheKeepsOfAPodWhyItDoesNotStart(t *testing.T) {
	meta := metav1.ObjectMeta{
		Name: "shop", Namespace: "team", UID: "1", ResourceVersion: "7", Labels: map[string]string{"l": "1"},
		Annotations: map[string]string{"a": "1"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: "slipway-webapp"}},
	}
	podMeta := *meta.DeepCopy()
	podMeta.Annotations, podMeta.ManagedFields = nil, nil
	port, probe := []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}, &corev1.Probe{PeriodSeconds: 5}
	asked := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	gates := []corev1.PodSchedulingGate{{Name: "example.com/queue"}}
	in := &corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{NodeName: "n", SchedulerName: "s", SchedulingGates: gates, Containers: []corev1.Container{
			{Name: "app", Image: "shop:1", Ports: port, ReadinessProbe: probe, Resources: asked, Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "x"}}},
			{Name: "sidecar", Image: "sidecar:1", Ports: port},
		}},
		Status: corev1.PodStatus{Phase: "Running"},
	}
	want := &corev1.Pod{
		ObjectMeta: podMeta,
		Spec: corev1.PodSpec{NodeName: "n", SchedulingGates: gates, Containers: []corev1.Container{
			{Name: "app", Ports: port, ReadinessProbe: probe, Resources: asked}, {Name: "sidecar"},
		}},
		Status: corev1.PodStatus{Phase: "Running"},
	}
	got, err := keepPodStatus(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Two entries for one kind would be one of them, whichever.
func TestAKindIsInTheBudgetOnce(t *testing.T) {
	scheme, seen := Scheme(), map[schema.GroupVersionKind]bool{}
	for object := range cacheOptions(Kinds(), nil).ByObject {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		if seen[kind] {
			t.Errorf("%s is in it twice", kind.Kind)
		}
		seen[kind] = true
	}
	if len(seen) < 20 {
		t.Errorf("the budget has %d kinds", len(seen))
	}
}
