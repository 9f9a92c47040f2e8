package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/kit"
)

// livePod reads a pod that may have gone.
type livePod struct {
	client.Reader

	pod   *corev1.Pod
	there *bool
}

func (l livePod) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if !*l.there {
		return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	l.pod.DeepCopyInto(into.(*corev1.Pod))
	return nil
}

// A pod that answered after it was silent may have gone when it is silent again.
func TestAPodIsLookedAtEachTimeItFallsSilent(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge-1", UID: "1"},
		Status:     corev1.PodStatus{PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	there := true
	r := &Reconciler{kit: &kit.Tools{Live: livePod{pod: pod, there: &there}}, silent: lru.New(10)}
	confirm := func(silent bool) error {
		return r.confirmSilence(t.Context(), &scope{served: served{replicas: []replicaView{{pod: pod, silent: silent}}}})
	}
	if err := confirm(true); err != nil {
		t.Errorf("a pod that is there and does not answer: %v", err)
	}
	there = false
	if err := confirm(true); err != nil {
		t.Errorf("it is looked at twice: %v", err)
	}
	if err := confirm(false); err != nil {
		t.Errorf("a pod that answers: %v", err)
	}
	if err := confirm(true); err == nil {
		t.Error("a pod that has gone counts as silent")
	}
}

// Who may write routes in one namespace must not make those of others look as if no pod served them.
func TestManyProblemsOfATenantAreNoNewsOfOthers(t *testing.T) {
	doc := document.Document{
		Protocol: document.Protocol, Revision: 1, UID: "gateway", Generation: 1, View: &document.View{Current: true},
		Routes: []string{document.RouteDigest("good", 1)},
	}
	for i := range 20 * 256 { // as a pod of an older release tells them
		doc.Problems = append(doc.Problems, document.Problem{
			Route: -1, Name: "a/bad", Field: fmt.Sprintf("HTTPRoute a/bad-%d: rules[%d]", i/256, i), Reason: "BackendNotFound", Message: "no Service",
		})
	}
	doc.Problems = append(doc.Problems, document.Problem{Route: -1, Reason: slipwayv1alpha1.ReasonLimitNotShared, Message: "counted apart"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("wait") {
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(doc)
	}))
	t.Cleanup(server.Close)
	address, err := netip.ParseAddrPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge-1", UID: "1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: address.Addr().String(), Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	name, reported := types.NamespacedName{Namespace: "infra", Name: "edge"}, make(chan types.NamespacedName, 10)
	follower := replica.New(replica.Options{Port: int(address.Port())})
	follower.Notify(func(name types.NamespacedName) { reported <- name })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follower.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	follower.Follow(t.Context(), name, document.Size{Routes: 100, Listeners: 10, Objects: 100}, []replica.Pod{{UID: pod.UID, IP: pod.Status.PodIP, Ready: true}})
	<-reported
	s := &scope{
		gateway: &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{UID: "gateway"}}, deployment: &appsv1.Deployment{},
		pods: []corev1.Pod{pod}, answers: map[types.UID]replica.Answer{pod.UID: follower.Answer(name, pod.UID)},
	}
	s.judgePods()
	if lack := s.routeLack(&gatewayapi.Route{UID: "good", Generation: 1}); lack != nil {
		t.Errorf("the route of another tenant is not live: %+v", lack)
	}
	if lack := s.routeLack(&gatewayapi.Route{UID: "good", Generation: 2}); lack == nil {
		t.Error("a generation that the pod does not serve is live")
	}
	if lack := s.served.apart(slipwayv1alpha1.ReasonLimitNotShared); lack == nil {
		t.Error("what comes after the problems of the tenant is not heard")
	}
}

// What holds up the changes of every tenant is reported of the Gateway, and of each route that is not served for it.
func TestAPodThatCannotServeTheNewestObjectsSaysWhy(t *testing.T) {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	doc := document.Document{
		UID: "gateway", Generation: 1, View: &document.View{Current: true}, Routes: []string{document.RouteDigest("shop", 1)},
		Rejected: &document.Rejected{Generation: 1, Reason: slipwayv1alpha1.ReasonImageIncompatible, Message: "it has a defect"},
	}
	s := &scope{
		gateway: &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{UID: "gateway"}}, deployment: &appsv1.Deployment{}, pods: []corev1.Pod{pod},
		answers: map[types.UID]replica.Answer{pod.UID: {State: replica.Answering, Document: &doc}},
	}
	s.judgePods()
	for _, test := range []struct {
		generation int64
		want       *lack
	}{
		{1, nil},
		{2, &lack{reason: ReasonReplicaBehind, message: `pod "edge-1" does not serve this generation of the route: it has a defect`}},
	} {
		got := s.routeLack(&gatewayapi.Route{UID: "shop", Generation: test.generation})
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(lack{})); diff != "" {
			t.Errorf("generation %d (-want +got):\n%s", test.generation, diff)
		}
	}
	want := &metav1.Condition{
		Type: ConditionDegraded, Status: metav1.ConditionTrue, Reason: slipwayv1alpha1.ReasonImageIncompatible,
		Message: `pod "edge-1" serves old objects, and no change: it has a defect`,
	}
	if diff := cmp.Diff(want, s.degraded()); diff != "" {
		t.Errorf("Degraded (-want +got):\n%s", diff)
	}
	s.answers[pod.UID] = replica.Answer{State: replica.Answering, Document: &document.Document{UID: "gateway", View: doc.View}}
	s.served = served{}
	s.judgePods()
	if got := s.degraded(); got != nil {
		t.Errorf("Degraded is still there: %+v", got)
	}
}
