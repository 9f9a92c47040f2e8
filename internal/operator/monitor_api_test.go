//go:build apitest

package operator_test

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// shippedMonitor is the StatefulSet in config/monitor.
func shippedMonitor(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "monitor", "statefulset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set := &appsv1.StatefulSet{}
	if err := yaml.UnmarshalStrict(raw, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// The namespace of the operator enforces the level, and what it does not let in never runs.
func TestTheMonitorsPodIsLetIntoARestrictedNamespace(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "restricted-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := env.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	set := shippedMonitor(t)
	set.Namespace = namespace.Name
	if err := env.Client.Create(t.Context(), set); err != nil {
		t.Errorf("the StatefulSet is refused: %v", err)
	}
	pod := func(change func(*corev1.PodSpec)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "monitor-", Namespace: namespace.Name}, Spec: *set.Spec.Template.Spec.DeepCopy()}
		// The controller of StatefulSets adds it.
		claim := corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-slipway-monitor-0"}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &claim}})
		change(&pod.Spec)
		return pod
	}
	if err := env.Client.Create(t.Context(), pod(func(*corev1.PodSpec) {})); err != nil {
		t.Errorf("the pod is refused: %v", err)
	}
	root := int64(0)
	if err := env.Client.Create(t.Context(), pod(func(s *corev1.PodSpec) { s.SecurityContext.RunAsUser = &root })); err == nil {
		t.Error("a pod of root is let in, so the namespace restricts nothing")
	}
}
