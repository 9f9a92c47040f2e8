package workload_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipway-dev/slipway/internal/workload"
)

func ownedBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	controls := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: &controls}}
}

func deploymentOf(replicas, counted int32, surge intstr.IntOrString) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge", UID: "deployment"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge}},
		},
		Status: appsv1.DeploymentStatus{Replicas: counted},
	}
}

func replicaSetOf(name string, owners []metav1.OwnerReference) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID("uid-" + name), OwnerReferences: owners,
		Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "hash-" + name},
	}}
}

func podOf(name, replicaSet string, change ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, OwnerReferences: ownedBy("ReplicaSet", replicaSet, types.UID("uid-"+replicaSet)),
		Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "hash-" + replicaSet},
	}}
	for _, c := range change {
		c(&pod)
	}
	return pod
}

func names(pods []corev1.Pod) []string {
	var list []string
	for i := range pods {
		list = append(list, pods[i].Name)
	}
	return list
}

func TestAPodOfADeploymentIsOneOfAReplicaSetThatTheDeploymentControls(t *testing.T) {
	deployment := deploymentOf(20, 20, intstr.FromString("25%"))
	noController := ownedBy("Deployment", "edge", "deployment")
	noController[0].Controller = nil
	sets := []metav1.PartialObjectMetadata{
		replicaSetOf("new", ownedBy("Deployment", "edge", "deployment")),
		replicaSetOf("old", ownedBy("Deployment", "edge", "deployment")),
		replicaSetOf("stranger", nil),
		replicaSetOf("former", ownedBy("Deployment", "edge", "former")),
		replicaSetOf("kind", ownedBy("StatefulSet", "edge", "deployment")),
		replicaSetOf("name", ownedBy("Deployment", "other", "deployment")),
		replicaSetOf("no-controller", noController),
	}
	pods := []corev1.Pod{
		podOf("a", "new"), podOf("b", "old"),
		podOf("c", "stranger"), podOf("d", "former"), podOf("e", "kind"), podOf("f", "name"), podOf("g", "no-controller"), podOf("h", "unknown"),
		podOf("i", "new", func(p *corev1.Pod) { p.OwnerReferences = nil }),
		podOf("j", "new", func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }),
		podOf("k", "new", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ConfigMap" }),
		podOf("l", "new", func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "v1" }),
		podOf("m", "new", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "uid-old" }),
		podOf("n", "new", func(p *corev1.Pod) { p.Labels = nil }), // the ReplicaSet's controller lets go of it
		podOf("o", "new", func(p *corev1.Pod) { p.Namespace = "other" }),
	}
	if diff := cmp.Diff([]string{"a", "b"}, names(workload.PodsOf(deployment, sets, pods))); diff != "" {
		t.Errorf("the pods (-want +got):\n%s", diff)
	}
	var own []string
	for _, set := range workload.ReplicaSetsOf(deployment, sets) {
		own = append(own, set.Name)
	}
	if diff := cmp.Diff([]string{"new", "old"}, own); diff != "" {
		t.Errorf("the ReplicaSets (-want +got):\n%s", diff)
	}
	if got := workload.PodsOf(&appsv1.Deployment{}, sets, pods); len(got) > 0 {
		t.Errorf("a Deployment that is not there has the pods %v", names(got))
	}
}

func TestADeploymentHasNoMorePodsThanItAsksForAndARolloutAdds(t *testing.T) {
	ready := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	aged := func(second int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.Unix(second, 0) }
	}
	evicted := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	now := metav1.NewTime(time.Unix(9, 0))
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &now }
	many := func(n int, change ...func(*corev1.Pod)) (list []corev1.Pod) {
		for i := range n {
			list = append(list, podOf(fmt.Sprintf("p%02d", i), "new", change...))
		}
		return list
	}
	for name, tc := range map[string]struct {
		deployment *appsv1.Deployment
		pods       []corev1.Pod
		want       int
		first      string
	}{
		"none asked for":                       {deploymentOf(0, 0, intstr.FromString("25%")), many(4), 0, ""},
		"two, and one by the rollout":          {deploymentOf(2, 2, intstr.FromString("25%")), many(4), 3, "p00"},
		"more are counted still":               {deploymentOf(2, 4, intstr.FromString("25%")), many(9), 5, "p00"},
		"a surge of any size":                  {deploymentOf(2, 0, intstr.FromString("2000000000%")), many(9), 4, "p00"},
		"a surge that is none":                 {deploymentOf(2, 0, intstr.FromString("x")), many(9), 2, "p00"},
		"the largest number":                   {deploymentOf(1<<31-1, 1<<31-1, intstr.FromInt32(1<<31-1)), many(9), 9, "p00"},
		"those that have ended are no surplus": {deploymentOf(1, 0, intstr.FromInt32(0)), append(append(many(2, evicted), podOf("x", "new", leaving)), podOf("y", "new")), 4, "p00"},
		"a ready one stays":                    {deploymentOf(1, 0, intstr.FromInt32(0)), append(many(4), podOf("z", "new", ready)), 1, "z"},
		"an old one stays": {
			deploymentOf(1, 0, intstr.FromInt32(0)),
			[]corev1.Pod{podOf("a", "new", ready, aged(5)), podOf("b", "new", ready, aged(4)), podOf("c", "new", ready, aged(6))},
			1, "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sets := []metav1.PartialObjectMetadata{replicaSetOf("new", ownedBy("Deployment", "edge", "deployment"))}
			got := names(workload.PodsOf(tc.deployment, sets, tc.pods))
			if len(got) != tc.want || tc.want > 0 && got[0] != tc.first {
				t.Errorf("pods %v, want %d from %q on", got, tc.want, tc.first)
			}
		})
	}
}
