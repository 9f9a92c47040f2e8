//go:build apitest

package apigateway_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Whoever may create pods can give them a gateway's labels. They are not asked what they serve, and status does not speak of
// them.
func TestPodsThatOnlyLookLikeTheGatewaysAreNotAsked(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.running()
	sets := &appsv1.ReplicaSetList{}
	if err := env.Client.List(t.Context(), sets, client.InNamespace(f.namespace)); err != nil || len(sets.Items) != 1 {
		t.Fatalf("%d ReplicaSets (%v), want 1", len(sets.Items), err)
	}
	deployment := &appsv1.Deployment{}
	if err := f.get("edge", deployment); err != nil {
		t.Fatal(err)
	}
	own := &sets.Items[0]
	alike := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "stranger", Namespace: f.namespace, Labels: own.Labels, Annotations: own.Annotations},
		Spec:       own.Spec,
	}
	f.create(alike)
	withoutTemplate := map[string]string{}
	for key, value := range own.Labels {
		if key != appsv1.DefaultDeploymentUniqueLabelKey {
			withoutTemplate[key] = value
		}
	}
	var asked atomic.Int32
	for i, pod := range []corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "labels", Labels: own.Labels}},
		{ObjectMeta: metav1.ObjectMeta{Name: "of-another-replicaset", Labels: own.Labels, OwnerReferences: controlledBy(alike, "ReplicaSet")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "of-the-deployment", Labels: own.Labels, OwnerReferences: controlledBy(deployment, "Deployment")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "of-the-gateway", Labels: own.Labels, OwnerReferences: controlledBy(gateway, "APIGateway")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "of-no-template", Labels: withoutTemplate, OwnerReferences: controlledBy(own, "ReplicaSet")}},
	} {
		pod.Namespace = f.namespace
		pod.Spec.Containers = []corev1.Container{{Name: "gateway", Image: "stranger"}}
		f.create(&pod)
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: f.stranger(i, &asked),
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "gateway", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		}
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
		if err := env.Client.Status().Update(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
	}
	// The cache has seen the pods before it sees the next spec, or soon after.
	for i := range 3 {
		update(f, gateway, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Routes[0].Path = fmt.Sprintf("/users-%d/", i) })
		f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}
	f.settle()
	if n := asked.Load(); n > 0 {
		t.Errorf("pods of strangers were asked %d times", n)
	}
}

func controlledBy(object client.Object, kind string) []metav1.OwnerReference {
	group := appsv1.SchemeGroupVersion
	if kind == "APIGateway" {
		group = slipwayv1alpha1.SchemeGroupVersion
	}
	return []metav1.OwnerReference{*metav1.NewControllerRef(object, group.WithKind(kind))}
}

// stranger answers as a pod that is no gateway, and counts how often it is asked.
func (f *fixture) stranger(number int, asked *atomic.Int32) (address string) {
	f.Helper()
	address = fmt.Sprintf("127.77.0.%d", number+1)
	listener, err := new(net.ListenConfig).Listen(f.Context(), "tcp", net.JoinHostPort(address, strconv.Itoa(f.cluster.Gateways.Port)))
	if err != nil {
		f.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.NotFound(w, nil)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	f.Cleanup(server.Close)
	return address
}
