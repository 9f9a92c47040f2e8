package apigateway

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/generate"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

func someGateway(s *generate.Source) *slipwayv1alpha1.APIGateway {
	gateway := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "team", UID: "uid", Generation: 3}}
	gateway.Spec.Replicas = generate.Optional[int32](s, 1, 0, 2)
	if s.Maybe() {
		gateway.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: generate.Optional[int32](s, 1, 2), MaxReplicas: 3}
	}
	for range s.Below(4) {
		gateway.Spec.Routes = append(gateway.Spec.Routes, slipwayv1alpha1.Route{
			Name: generate.Pick(s, "", "a", "b"), Host: slipwayv1alpha1.HostName(generate.Pick(s, "", "a.example.com", "*.example.com")),
			Path: generate.Pick(s, "", "/", "/("), PathType: generate.Pick(s, "", slipwayv1alpha1.PathRegularExpression),
			BackendService: &slipwayv1alpha1.BackendService{Name: "users", Port: 80},
		})
	}
	return gateway
}

func someAnswer(s *generate.Source, routes int) replica.Answer {
	answer := replica.Answer{State: generate.Pick(s, replica.Asking, replica.Answering, replica.Silent, replica.Incompatible, replica.Crowded)}
	if answer.State == replica.Incompatible {
		answer.Detail = "it speaks protocol 2"
	}
	if answer.State == replica.Crowded {
		answer.Detail = "the namespace tells too much"
	}
	if answer.State != replica.Answering {
		return answer
	}
	doc := &document.Document{UID: generate.Pick[types.UID](s, "uid", "other", ""), Generation: int64(s.Below(5))}
	if s.Maybe() {
		doc.Rejected = &document.Rejected{Generation: int64(s.Below(5)), Reason: slipwayv1alpha1.ReasonInvalidRoute, Message: "routes"}
	}
	for range s.Below(3) {
		doc.Problems = append(doc.Problems, document.Problem{
			Route: s.Below(routes+2) - 1, Message: "message: " + s.Text(),
			Reason: generate.Pick(s, slipwayv1alpha1.ReasonNoEndpoints, slipwayv1alpha1.ReasonBackendNotFound, slipwayv1alpha1.ReasonInvalidRegex, slipwayv1alpha1.ReasonCertificateExpired),
		})
	}
	answer.Document = doc
	return answer
}

// someScope is what the phases may have found before the pods are judged.
func someScope(s *generate.Source) *scope {
	gateway := someGateway(s)
	found := &scope{
		gateway: gateway, deployment: &appsv1.Deployment{}, service: &corev1.Service{}, ingress: &networkingv1.Ingress{},
		parent: &gatewayv1.Gateway{},
		check:  checkRoutes(gateway), answers: map[types.UID]replica.Answer{},
	}
	if s.Maybe() {
		found.deployment.UID, found.deployment.Name = "deployment-uid", "edge"
		generate.Deployment(s, found.deployment)
	}
	if s.Maybe() {
		found.conflicts = map[string]health.Trouble{}
		host := generate.Pick(s, "", "a.example.com")
		found.conflicts[host] = generate.Pick(s, hostConflict(host, "other/edge"), tooManyHosts(host, "default"))
	}
	for i := range s.Below(4) {
		pod := generate.Pod(s, fmt.Sprintf("edge-%d", i), "new")
		pod.UID, pod.Status.PodIP = types.UID(pod.Name), generate.Pick(s, "10.0.0.1", "")
		found.pods = append(found.pods, pod)
		found.answers[pod.UID] = someAnswer(s, len(gateway.Spec.Routes))
	}
	switch s.Below(4) {
	case 1:
		found.err = outcome.Blockedf(0, slipwayv1alpha1.ReasonNameConflict, "Service %q exists", "edge")
	case 2:
		found.err = outcome.Classify("Service", errors.New("timeout"))
	case 3:
		found.err = outcome.Waitingf(0, slipwayv1alpha1.ReasonTerminating, "Service %q is being deleted", "edge")
	}
	return found
}

// Whatever the cluster and the pods say: the conditions do not contradict each other, the
// routes add up, and the same facts give the same status again.
func FuzzStatus(f *testing.F) {
	generate.Seed(f, 200)
	f.Fuzz(func(t *testing.T, data []byte) {
		found := someScope(generate.From(data))
		found.judgePods(time.Unix(1000, 0))
		found.judgeRoutes()
		gateway := found.gateway.DeepCopy()
		gateway.Status = found.status(time.Unix(1000, 0))
		if err := truth.CheckAtRest(gateway); err != nil {
			t.Errorf("%v\n%+v", err, gateway.Status)
		}
		if int(gateway.Status.Routes.Total) != len(gateway.Spec.Routes) {
			t.Errorf("%d of %d routes are told of", gateway.Status.Routes.Total, len(gateway.Spec.Routes))
		}
		for _, route := range gateway.Status.Routes.NotLive {
			if route.Name == "" || route.Reason == "" || route.Message == "" {
				t.Errorf("a route that is not live is told of as %+v", route)
			}
		}
		found.gateway.Status = gateway.Status
		if diff := cmp.Diff(gateway.Status, found.status(time.Unix(2000, 0))); diff != "" {
			t.Errorf("another status of the same facts (-first +then):\n%s", diff)
		}
	})
}
