//go:build apitest

package workload_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// stage is a namespace with a Deployment.
type stage struct {
	*testing.T
	cluster   *workload.Cluster
	namespace string
}

func newStage(t *testing.T) *stage {
	t.Parallel()
	s := &stage{T: t, cluster: &workload.Cluster{Client: env.Client}, namespace: env.Namespace(t)}
	s.deploy("shop:1", 2)
	return s
}

func (s *stage) deploy(image string, replicas int32) {
	s.Helper()
	labels := map[string]string{"app": "shop"}
	s.must(env.Client.Create(s.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: s.namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
			},
		},
	}))
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) rollOut() {
	s.Helper()
	s.must(s.cluster.RollOut(s.Context(), s.namespace, "shop"))
}

func (s *stage) deployment() *appsv1.Deployment {
	s.Helper()
	deployment := &appsv1.Deployment{}
	s.must(env.Client.Get(s.Context(), types.NamespacedName{Namespace: s.namespace, Name: "shop"}, deployment))
	return deployment
}

func (s *stage) setImage(image string) {
	s.Helper()
	deployment := s.deployment()
	deployment.Spec.Template.Spec.Containers[0].Image = image
	s.must(env.Client.Update(s.Context(), deployment))
}

// pods are the images of the pods and how many of each are ready, for example
// "shop:1 2/3".
func (s *stage) pods() []string {
	s.Helper()
	list := &corev1.PodList{}
	s.must(env.Client.List(s.Context(), list, client.InNamespace(s.namespace)))
	all, ready := map[string]int{}, map[string]int{}
	for i := range list.Items {
		image := list.Items[i].Spec.Containers[0].Image
		all[image]++
		for _, c := range list.Items[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready[image]++
			}
		}
	}
	var reported []string
	for _, image := range slices.Sorted(maps.Keys(all)) {
		reported = append(reported, fmt.Sprintf("%s %d/%d", image, ready[image], all[image]))
	}
	return reported
}

// is checks the pods, and what the Deployment says of them.
func (s *stage) is(pods []string, updated, ready int32) {
	s.Helper()
	if diff := cmp.Diff(pods, s.pods()); diff != "" {
		s.Errorf("the pods (-want +got):\n%s", diff)
	}
	deployment := s.deployment()
	if status := deployment.Status; status.ObservedGeneration != deployment.Generation || status.UpdatedReplicas != updated || status.ReadyReplicas != ready {
		s.Errorf("the Deployment says %+v, want %d updated, %d ready", status, updated, ready)
	}
}

func TestScalingDownDeletesPods(t *testing.T) {
	s := newStage(t)
	s.rollOut()
	deployment := s.deployment()
	*deployment.Spec.Replicas = 1
	s.must(env.Client.Update(s.Context(), deployment))
	s.rollOut()
	s.is([]string{"shop:1 1/1"}, 1, 1)
}

func TestAnEarlierTemplateServesUntilTheNextOneIsReady(t *testing.T) {
	s := newStage(t)
	s.rollOut()
	first := s.deployment().Annotations["deployment.kubernetes.io/revision"]
	s.setImage("shop:2")
	s.must(s.cluster.Stick(t.Context(), s.namespace, "shop", corev1.PodStatus{Phase: corev1.PodPending}))
	s.is([]string{"shop:1 2/2", "shop:2 0/1"}, 1, 2)
	s.rollOut()
	s.is([]string{"shop:2 2/2"}, 2, 2)
	s.setImage("shop:1")
	s.rollOut()
	s.is([]string{"shop:1 2/2"}, 2, 2)
	if got := s.deployment().Annotations["deployment.kubernetes.io/revision"]; first != "1" || got != "3" {
		t.Errorf("the revisions are %q first and %q after going back, want 1 and 3", first, got)
	}
	sets := &appsv1.ReplicaSetList{}
	s.must(env.Client.List(t.Context(), sets, client.InNamespace(s.namespace)))
	if len(sets.Items) != 2 {
		t.Errorf("%d ReplicaSets, want one for each template", len(sets.Items))
	}
}

// Nothing else collects what a Deployment leaves that is deleted.
func TestANewDeploymentHasNothingOfAnEarlierOneOfItsName(t *testing.T) {
	s := newStage(t)
	s.must(s.cluster.Stick(t.Context(), s.namespace, "shop", corev1.PodStatus{Phase: corev1.PodPending}))
	s.setImage("shop:2")
	s.rollOut()
	s.must(env.Client.Delete(t.Context(), s.deployment(), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	s.deploy("shop:1", 1)
	s.must(s.cluster.Stick(t.Context(), s.namespace, "shop", corev1.PodStatus{Phase: corev1.PodPending}))
	s.is([]string{"shop:1 0/1"}, 1, 0)
	sets := &appsv1.ReplicaSetList{}
	s.must(env.Client.List(t.Context(), sets, client.InNamespace(s.namespace)))
	if len(sets.Items) != 1 || !metav1.IsControlledBy(&sets.Items[0], s.deployment()) {
		t.Errorf("the ReplicaSets are %v, want one of the new Deployment", sets.Items)
	}
}

func TestPodsBehaveAsTheScriptSays(t *testing.T) {
	s := newStage(t)
	player := workload.NewPlayer(env.Client, env.Client, nil, s.namespace, map[string]workload.Behaviour{"shop:1": workload.Crash})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { player.Run(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()

	waiting := func(want string) {
		t.Helper()
		environment.Eventually(t, func() error {
			if got := s.pods(); !player.Idle(t.Context()) || !slices.Equal(got, []string{want}) {
				return fmt.Errorf("the pods are %q, want %q", got, want)
			}
			return nil
		})
	}
	waiting("shop:1 0/1")
	player.Behave(map[string]workload.Behaviour{"shop:1": workload.Ready})
	waiting("shop:1 2/2")
	s.setImage("shop:2")
	waiting("shop:2 2/2")
}

func TestWhatIsClaimedIsBoundAndWhatIsAutoscaledHasItsLowerBound(t *testing.T) {
	s := newStage(t)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: s.namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1024Mi")}},
		},
	}
	lowest := int32(3)
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: s.namespace},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"},
			MinReplicas:    &lowest, MaxReplicas: 5,
		},
	}
	for kind, object := range map[string]client.Object{"PersistentVolumeClaim": claim, "HorizontalPodAutoscaler": autoscaler} {
		s.must(env.Client.Create(t.Context(), object))
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		s.must(err)
		seen := &unstructured.Unstructured{Object: fields}
		seen.SetKind(kind)
		s.must(s.cluster.Act(t.Context(), seen, nil))
	}
	s.must(env.Client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	if has := claim.Status.Capacity[corev1.ResourceStorage]; claim.Status.Phase != corev1.ClaimBound || has.String() != "1Gi" {
		t.Errorf("the claim is %+v", claim.Status)
	}
	if got := *s.deployment().Spec.Replicas; got != lowest {
		t.Errorf("%d replicas, want %d", got, lowest)
	}
}
