//go:build apitest

package apigateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// soon is how soon status names what is wrong, and how soon it is cleared. 2 s are promised, and test/truth measures that. Here
// other packages are tested beside this one.
const soon = 5 * time.Second

// promptly does something and waits for a condition, which has to come soon.
func (f *fixture) promptly(do func(), conditionType string, status metav1.ConditionStatus, reason string) *slipwayv1alpha1.APIGateway {
	f.Helper()
	start := time.Now()
	do()
	gateway := f.waitFor(conditionType, status, reason)
	took := time.Since(start).Round(time.Millisecond)
	f.Logf("%s %s %s after %v", conditionType, status, reason, took)
	if took > soon {
		f.Errorf("%s %s %s took %v, want at most %v", conditionType, status, reason, took, soon)
	}
	return gateway
}

func notLive(t *testing.T, gateway *slipwayv1alpha1.APIGateway, want ...slipwayv1alpha1.RouteNotLive) {
	t.Helper()
	if diff := cmp.Diff(want, gateway.Status.Routes.NotLive); diff != "" {
		t.Errorf("routes that are not live (-want +got):\n%s", diff)
	}
}

// says answers with a fixed document, and holds the answer back as a gateway does.
func says(doc document.Document) http.Handler {
	doc.Protocol, doc.Revision = document.Protocol, 1
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("wait") == "1" {
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(doc)
	})
}

func TestABadRouteIsNamedAndTakesNoOtherDown(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.running()
	bad := f.promptly(func() {
		update(f, gateway, func(g *slipwayv1alpha1.APIGateway) {
			g.Spec.Routes[1].Path, g.Spec.Routes[1].PathType = "/(", slipwayv1alpha1.PathRegularExpression
		})
	}, slipwayv1alpha1.ConditionAccepted, metav1.ConditionFalse, slipwayv1alpha1.ReasonInvalidRegex)
	notLive(t, bad, slipwayv1alpha1.RouteNotLive{
		Name: "api.example.com/(", Reason: "InvalidRegex", Replicas: "0/2",
		Message: "path: the regular expression \"/(\" does not compile: error parsing regexp: missing closing ): `/(`",
	})
	if bad.Status.Routes.Live != 1 {
		t.Errorf("%d routes are live, want the other one", bad.Status.Routes.Live)
	}
	for condition, status := range map[string]metav1.ConditionStatus{"Stalled": "True", "Degraded": "True", "Ready": "False", "Programmed": "True", "ResolvedRefs": "True"} {
		if err := has(bad, condition, status, ""); err != nil {
			t.Error(err)
		}
	}
	f.promptly(func() {
		update(f, gateway, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Routes[1].Path = "/[a-z]+" })
	}, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

func TestAMissingBackendIsNamedAndCleared(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	f.running()
	service := f.service("user-service")
	f.promptly(func() { f.delete(service) }, slipwayv1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, slipwayv1alpha1.ReasonBackendNotFound)
	// The second replica may say so a moment later.
	bad := f.wait(func(g *slipwayv1alpha1.APIGateway) error {
		if got := g.Status.Routes.NotLive; len(got) == 1 && got[0].Replicas == "1/2" {
			return fmt.Errorf("routes that are not live: %+v", got)
		}
		return nil
	})
	notLive(t, bad, slipwayv1alpha1.RouteNotLive{
		Name: "api.example.com/users/", Reason: "BackendNotFound", Replicas: "0/2",
		Message: `backendService: Service "user-service" does not exist`,
	})
	if err := has(bad, "Ready", metav1.ConditionFalse, slipwayv1alpha1.ReasonRoutesNotLive); err != nil {
		t.Error(err)
	}
	f.promptly(func() { f.create(f.service("user-service")) }, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// One of two replicas reports something else than the other.
func TestWhatAReplicaSaysIsTold(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.running()
	pod := f.pods()[0]
	with := func(problem document.Problem) document.Document {
		return document.Document{UID: gateway.UID, Generation: gateway.Generation, Problems: []document.Problem{problem}}
	}
	behind := func(reason, message string) []slipwayv1alpha1.RouteNotLive {
		return []slipwayv1alpha1.RouteNotLive{
			{Name: "api.example.com/users/", Reason: reason, Message: message, Replicas: "1/2"},
			{Name: "api.example.com/products/", Reason: reason, Message: message, Replicas: "1/2"},
		}
	}
	quoted := "pod \"" + pod.Name + "\""
	tests := []struct {
		name      string
		answer    http.Handler
		condition string
		reason    string
		want      []slipwayv1alpha1.RouteNotLive
		stalled   bool
	}{
		{
			"an earlier spec", says(document.Document{UID: gateway.UID}), "Programmed", "ReplicaBehind",
			behind("ReplicaBehind", quoted+" serves an earlier spec"), false,
		},
		{
			"another APIGateway of the same name", says(document.Document{UID: "other", Generation: gateway.Generation}), "Programmed", "ReplicaBehind",
			behind("ReplicaBehind", quoted+" serves an earlier spec"), false,
		},
		{
			"no answer", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }), "Programmed", "ReplicaBehind",
			behind("ReplicaBehind", quoted+" does not answer on its admin port"), false,
		},
		{
			"no answer in time", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("wait") {
					panic(http.ErrAbortHandler)
				}
				<-r.Context().Done()
			}), "Programmed", "ReplicaBehind",
			behind("ReplicaBehind", quoted+" does not answer on its admin port"), false,
		},
		{
			"no such page", http.NotFoundHandler(), "Programmed", "ImageIncompatible",
			behind("ImageIncompatible", quoted+": /revision is answered with status 404: its image and the operator are of different releases: check spec.image"), true,
		},
		{
			"a spec that it does not take", says(document.Document{UID: gateway.UID, Rejected: &document.Rejected{Generation: gateway.Generation, Reason: "InvalidRoute", Message: "routes: too many"}}),
			"Programmed", "InvalidRoute", behind("InvalidRoute", quoted+" goes on with an earlier spec: routes: too many"), true,
		},
		{
			"a route without endpoints", says(with(document.Problem{Route: 1, Reason: "NoEndpoints", Message: "none is ready"})), "Ready", "RoutesNotLive",
			[]slipwayv1alpha1.RouteNotLive{{Name: "api.example.com/products/", Reason: "NoEndpoints", Message: "none is ready", Replicas: "1/2"}},
			false,
		},
		{
			"a certificate that has expired", says(with(document.Problem{Route: -1, Field: "spec.tls[0].secretRef", Reason: "CertificateExpired", Message: `the certificate in Secret "cert" has expired`})),
			"ResolvedRefs", "CertificateExpired", nil, false,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := &fixture{T: t, namespace: f.namespace, cluster: f.cluster}
			bad := f.promptly(func() { f.replace(pod, tc.answer) }, tc.condition, metav1.ConditionFalse, tc.reason)
			notLive(t, bad, tc.want...)
			if err := has(bad, "Ready", metav1.ConditionFalse, ""); err != nil {
				t.Error(err)
			}
			if stalled := has(bad, "Stalled", metav1.ConditionTrue, tc.reason) == nil; stalled != tc.stalled {
				t.Errorf("Stalled: %v, want %v", stalled, tc.stalled)
			}
			f.promptly(func() { f.replace(pod, nil) }, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
		})
	}
}

func TestAPodThatDoesNotStartIsNamed(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	f.create(f.gateway())
	pull := corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "gateway", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "manifest unknown"}},
	}}}
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonRolloutInProgress)
	if err := f.cluster.Stick(t.Context(), f.namespace, "edge", pull); err != nil {
		t.Fatal(err)
	}
	gateway := f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, slipwayv1alpha1.ReasonImageNotFound)
	if gateway.Status.Routes.Live != 0 || len(gateway.Status.Routes.NotLive) != 2 {
		t.Errorf("routes are %+v, want none live", gateway.Status.Routes)
	}
	if err := has(gateway, slipwayv1alpha1.ConditionResolvedRefs, metav1.ConditionUnknown, ""); err != nil {
		t.Error(err)
	}
}

func TestAGatewayThatIsScaledToNothingIsReadyAndServesNoRoute(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.running()
	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Replicas = ptr[int32](0) })
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, "")
	f.startPods()
	got := f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonScaledToZero)
	if got.Status.Routes.Live != 0 || got.Status.Routes.NotLive[0].Reason != slipwayv1alpha1.ReasonScaledToZero {
		t.Errorf("routes are %+v, want none live", got.Status.Routes)
	}
}

// Who reads the number of replicas finds it, as after scaling down.
func TestAGatewayThatNeverRanSaysThatItHasNoReplicas(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	f.create(f.gateway(func(g *slipwayv1alpha1.APIGateway) { g.Spec.Replicas = ptr[int32](0) }))
	f.startPods()
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonScaledToZero)
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(slipwayv1alpha1.SchemeGroupVersion.WithKind("APIGateway"))
	if err := f.get("edge", stored); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"replicas", "readyReplicas"} {
		if number, found, err := unstructured.NestedInt64(stored.Object, "status", field); err != nil || !found || number != 0 {
			t.Errorf("status.%s is %d, there: %v, error %v; want 0", field, number, found, err)
		}
	}
}
