package apigateway

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

// runningScope is a gateway with one route whose ready pods answer this.
func runningScope(answers ...replica.Answer) *scope {
	count := int32(len(answers))
	gateway := &slipwayv1alpha1.APIGateway{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "team", UID: "uid", Generation: 3},
		Spec: slipwayv1alpha1.APIGatewaySpec{
			Replicas: &count,
			Routes:   []slipwayv1alpha1.Route{{Name: "users", BackendService: &slipwayv1alpha1.BackendService{Name: "users", Port: 80}}},
		},
	}
	s := &scope{
		gateway: gateway, service: &corev1.Service{}, ingress: &networkingv1.Ingress{},
		parent: &gatewayv1.Gateway{},
		deployment: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "team", UID: "deployment", Generation: 1},
			Spec:       appsv1.DeploymentSpec{Replicas: &count},
			Status: appsv1.DeploymentStatus{
				ObservedGeneration: 1, Replicas: count, UpdatedReplicas: count, ReadyReplicas: count, AvailableReplicas: count,
			},
		},
		check: checkRoutes(gateway), answers: map[types.UID]replica.Answer{},
	}
	for i, answer := range answers {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("edge-%d", i), UID: types.UID(fmt.Sprint(i))}}
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		s.pods = append(s.pods, pod)
		s.answers[pod.UID] = answer
	}
	return s
}

func TestAGatewayIsReadyOnceEveryReadyPodSaysThatItServesThisSpec(t *testing.T) {
	serves := func(generation int64) replica.Answer {
		return replica.Answer{State: replica.Answering, Document: &document.Document{UID: "uid", Generation: generation}}
	}
	tests := map[string]struct {
		other replica.Answer
		want  string // the reason of Ready, Programmed and the route; empty: all is well
	}{
		"serves it":             {serves(3), ""},
		"serves an earlier one": {serves(2), slipwayv1alpha1.ReasonReplicaBehind},
		"has not answered yet":  {replica.Answer{State: replica.Asking}, slipwayv1alpha1.ReasonReplicaBehind},
		"does not answer":       {replica.Answer{State: replica.Silent}, slipwayv1alpha1.ReasonReplicaBehind},
		"is not understood":     {replica.Answer{State: replica.Incompatible}, slipwayv1alpha1.ReasonImageIncompatible},
		"has no room":           {replica.Answer{State: replica.Crowded}, slipwayv1alpha1.ReasonTooMuchToTell},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := runningScope(serves(3), tc.other)
			s.judgePods(time.Unix(1000, 0))
			s.judgeRoutes()
			status := s.status(time.Unix(1000, 0))
			for _, conditionType := range []string{slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionProgrammed} {
				c := meta.FindStatusCondition(status.Conditions, conditionType)
				if is := c.Status == metav1.ConditionTrue; is != (tc.want == "") || (!is && c.Reason != tc.want) {
					t.Errorf("%s is %s %s (%s), want reason %q", conditionType, c.Status, c.Reason, c.Message, tc.want)
				}
			}
			if live := status.Routes.Live == 1; live != (tc.want == "") {
				t.Errorf("the routes are %+v", status.Routes)
			}
			gateway := s.gateway.DeepCopy()
			gateway.Status = status
			if err := truth.CheckAtRest(gateway); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a pod says names the field, and so does every condition that repeats it.
func TestTroubleThatAPodTellsNamesItsFieldAndItsCondition(t *testing.T) {
	const field = "spec.tls[0].secretRef"
	tests := map[string]struct {
		problem document.Problem
		want    string // the message of Ready and ResolvedRefs
	}{
		"a certificate": {
			document.Problem{Route: -1, Name: "cert", Field: field, Reason: slipwayv1alpha1.ReasonCertificateExpired, Message: `the certificate in Secret "cert" has expired`},
			field + `: the certificate in Secret "cert" has expired`,
		},
		"a Service that cannot be followed": {
			document.Problem{Name: "users", Field: "spec.routes[0]", Reason: slipwayv1alpha1.ReasonUnsupportedService, Message: `backendService: Service "users" is of type ExternalName`},
			`route "users": backendService: Service "users" is of type ExternalName`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := runningScope(replica.Answer{State: replica.Answering, Document: &document.Document{
				UID: "uid", Generation: 3, Problems: []document.Problem{tc.problem},
			}})
			s.judgePods(time.Unix(1000, 0))
			s.judgeRoutes()
			conditions := s.status(time.Unix(1000, 0)).Conditions
			if c := meta.FindStatusCondition(conditions, slipwayv1alpha1.ConditionReady); c.Status != metav1.ConditionFalse || c.Message != tc.want {
				t.Errorf("Ready is %s: %s", c.Status, c.Message)
			}
			if c := meta.FindStatusCondition(conditions, slipwayv1alpha1.ConditionResolvedRefs); c.Status != metav1.ConditionFalse || c.Reason != tc.problem.Reason || c.Message != tc.want {
				t.Errorf("ResolvedRefs is %s %s: %s", c.Status, c.Reason, c.Message)
			}
		})
	}
}

// A restarted operator may be shown the pods as they were before they were ready: a status
// made of them would call replicas behind that serve.
func TestStatusWaitsForAsManyReadyPodsAsTheDeploymentCounts(t *testing.T) {
	answer := replica.Answer{State: replica.Answering, Document: &document.Document{UID: "uid", Generation: 3}}
	for _, shown := range []int{0, 1, 2} {
		s := runningScope(answer, answer)
		s.pods = s.pods[:shown]
		s.judgePods(time.Unix(1000, 0))
		s.judgeRoutes()
		if want := shown < 2; s.unsettled != want || s.staleCache != want {
			t.Errorf("%d pods of two that are ready: unsettled %v, staleCache %v, want %v", shown, s.unsettled, s.staleCache, want)
		}
		// When the wait is over, nothing good is said for a pod that was not asked.
		if status := s.status(time.Now()); meta.IsStatusConditionTrue(status.Conditions, slipwayv1alpha1.ConditionReady) != (shown == 2) {
			t.Errorf("%d pods of two that are ready: %+v", shown, status.Conditions)
		}
	}
}

// A stale replica is not current, whatever it serves. Where another is current it is told to
// stand by; where none is, all serve on.
func TestAReplicaThatDoesNotHearTheAPIServerIsNotCurrent(t *testing.T) {
	answer := func(generation int64, view *document.View) replica.Answer {
		return replica.Answer{State: replica.Answering, Document: &document.Document{UID: "uid", Generation: generation, View: view}}
	}
	current, stale := &document.View{Current: true}, &document.View{Since: time.Unix(1, 0), Of: []string{"EndpointSlices"}}
	tests := map[string]struct {
		answers     []replica.Answer
		notReady    int // how many of them, from the first, get no requests
		want        string
		standby     []types.UID
		programmed  metav1.ConditionStatus
		wantMessage string
	}{
		"all hear it": {
			answers: []replica.Answer{answer(3, current), answer(3, current)}, programmed: metav1.ConditionTrue,
		},
		"one does not": {
			answers: []replica.Answer{answer(3, stale), answer(3, current)}, want: slipwayv1alpha1.ReasonReplicaStale,
			standby: []types.UID{"0"}, programmed: metav1.ConditionFalse,
			wantMessage: `pod "edge-0" has not heard from the API server: it may serve old routes, endpoints and Secrets`,
		},
		"one does not and stands by": {
			answers: []replica.Answer{answer(3, stale), answer(3, current)}, notReady: 1, want: slipwayv1alpha1.ReasonReplicaStale,
			standby: []types.UID{"0"}, programmed: metav1.ConditionTrue,
			wantMessage: `pod "edge-0" has not heard from the API server: it gets no requests`,
		},
		"none does": {
			answers: []replica.Answer{answer(3, stale), answer(3, stale)}, want: slipwayv1alpha1.ReasonReplicaStale, programmed: metav1.ConditionFalse,
		},
		"the one that does is not ready": {
			answers: []replica.Answer{answer(3, current), answer(3, stale)}, notReady: 1, want: slipwayv1alpha1.ReasonReplicaStale, programmed: metav1.ConditionFalse,
		},
		"the one that does has an older spec": {
			answers: []replica.Answer{answer(3, stale), answer(2, current)}, want: slipwayv1alpha1.ReasonReplicaStale, programmed: metav1.ConditionFalse,
		},
		"the other is of a release that does not tell": {
			answers: []replica.Answer{answer(3, stale), answer(3, nil)}, want: slipwayv1alpha1.ReasonReplicaStale, programmed: metav1.ConditionFalse,
		},
		"the other does not answer": {
			answers: []replica.Answer{answer(3, stale), {State: replica.Silent, Document: answer(3, current).Document}},
			want:    slipwayv1alpha1.ReasonReplicaStale, programmed: metav1.ConditionFalse,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := runningScope(tc.answers...)
			for i := range tc.notReady {
				s.pods[i].Status.Conditions[0].Status = corev1.ConditionFalse
				s.deployment.Status.ReadyReplicas--
				s.deployment.Status.AvailableReplicas--
			}
			s.judgePods(time.Unix(1000, 0))
			s.judgeRoutes()
			if got := slices.Sorted(maps.Keys(s.standby())); !slices.Equal(got, tc.standby) {
				t.Errorf("%v stand by, want %v", got, tc.standby)
			}
			gateway := s.gateway.DeepCopy()
			gateway.Status = s.status(time.Unix(1000, 0))
			if err := truth.CheckAtRest(gateway); err != nil {
				t.Error(err)
			}
			conditions := gateway.Status.Conditions
			ready, degraded := meta.FindStatusCondition(conditions, slipwayv1alpha1.ConditionReady), meta.FindStatusCondition(conditions, slipwayv1alpha1.ConditionDegraded)
			if (ready.Status == metav1.ConditionTrue) != (tc.want == "") || (tc.want != "" && (ready.Reason != tc.want || degraded.Reason != tc.want)) {
				t.Errorf("Ready is %s %s (%s), Degraded %s %s; want reason %q", ready.Status, ready.Reason, ready.Message, degraded.Status, degraded.Reason, tc.want)
			}
			if tc.wantMessage != "" && ready.Message != tc.wantMessage {
				t.Errorf("the message is %q, want %q", ready.Message, tc.wantMessage)
			}
			if programmed := meta.FindStatusCondition(conditions, slipwayv1alpha1.ConditionProgrammed); programmed.Status != tc.programmed {
				t.Errorf("Programmed is %s %s", programmed.Status, programmed.Reason)
			}
		})
	}
}

// A replica that serves an earlier spec serves most of its routes.
func TestOnlyRoutesThatDifferAreBehind(t *testing.T) {
	s := runningScope(replica.Answer{}, replica.Answer{})
	other := s.gateway.Spec.Routes[0].DeepCopy()
	other.Name, other.Path = "other", "/other/"
	s.gateway.Spec.Routes = append(s.gateway.Spec.Routes, *other)
	s.check = checkRoutes(s.gateway)
	digests := slices.Clone(s.digests())
	before := other.DeepCopy()
	before.Path = "/before/"
	digest, err := document.Digest(before)
	if err != nil {
		t.Fatal(err)
	}
	says := func(generation int64, routes ...string) replica.Answer {
		return replica.Answer{State: replica.Answering, Document: &document.Document{UID: "uid", Generation: generation, Routes: routes}}
	}
	for name, tc := range map[string]struct {
		other replica.Answer
		live  int32
	}{
		"one differs":                        {says(2, digests[0], digest), 1},
		"none differs":                       {says(2, digests[1], digests[0]), 2},
		"an older release that says nothing": {says(2), 0},
		"another APIGateway of the name": {
			replica.Answer{State: replica.Answering, Document: &document.Document{UID: "other", Generation: 2, Routes: digests}}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.answers["0"], s.answers["1"] = says(3, digests...), tc.other
			s.judgePods(time.Unix(1000, 0))
			s.judgeRoutes()
			status := s.status(time.Unix(1000, 0))
			if status.Routes.Live != tc.live {
				t.Errorf("%d routes are live, want %d: %+v", status.Routes.Live, tc.live, status.Routes)
			}
			for _, route := range status.Routes.NotLive {
				if route.Replicas != "1/2" || route.Reason != slipwayv1alpha1.ReasonReplicaBehind {
					t.Errorf("got %+v, want 1/2 and %s", route, slipwayv1alpha1.ReasonReplicaBehind)
				}
			}
			if c := meta.FindStatusCondition(status.Conditions, slipwayv1alpha1.ConditionReady); c.Reason != slipwayv1alpha1.ReasonReplicaBehind {
				t.Errorf("Ready is %s %s", c.Status, c.Reason)
			}
		})
	}
}
