//go:build apitest

package workload_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// The pods of a Gateway say what a real one would: what they read decides, and the arguments that they were started with.
func TestPodsOfAGatewaySayWhatTheyServe(t *testing.T) {
	s := &stage{T: t, namespace: env.Namespace(t)}
	var files []string
	for _, kind := range []string{"gateways", "httproutes", "tlsroutes", "tcproutes", "udproutes", "referencegrants"} {
		files = append(files, "config/crd/standard/gateway.networking.k8s.io_"+kind+".yaml")
	}
	s.must(env.InstallModule(t.Context(), "sigs.k8s.io/gateway-api", files...))
	gateways, err := workload.NewGateways(env.Client)
	s.must(err)
	t.Cleanup(gateways.Close)
	s.cluster = &workload.Cluster{Client: env.Client, Gateways: gateways}

	gateway := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: s.namespace},
		Spec: gatewayv1.GatewaySpec{GatewayClassName: "any", Listeners: []gatewayv1.Listener{
			{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType},
			{Name: "admin", Port: 15021, Protocol: gatewayv1.HTTPProtocolType}, // reserved, so it is not served
		}},
	}
	route := s.route()
	s.must(env.Client.Create(t.Context(), gateway))
	s.must(env.Client.Create(t.Context(), route))
	s.must(env.Client.Create(t.Context(), s.gatewayDeployment("--access-log-sample-percent=7", "--borrowed-certificates=copies")))
	s.rollOut()

	said := s.said(gateways)
	want := document.Document{
		Protocol: document.Protocol, Version: "test", Revision: said.Revision, UID: gateway.UID, Generation: 1, View: &document.View{Current: true},
		Listeners: []document.ServedListener{{Name: "web", Digest: document.ListenerDigest(80, false, "", []string{"--access-log-sample-percent=7"})}},
		Routes:    []string{document.RouteDigest(route.UID, 1)},
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("they say (-want +got):\n%s", diff)
	}

	s.must(env.Client.Delete(t.Context(), route))
	environment.Eventually(t, func() error {
		if now := s.said(gateways); len(now.Routes) != 0 || now.Revision == said.Revision {
			return fmt.Errorf("they say %+v", now)
		}
		return nil
	})
}

func (s *stage) route() *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: s.namespace}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "edge"}}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{Filters: []gatewayv1.HTTPRouteFilter{{
		Type:            gatewayv1.HTTPRouteFilterRequestRedirect,
		RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{Hostname: new(gatewayv1.PreciseHostname("example.com"))},
	}}}}
	return route
}

// gatewayDeployment is what runs the pods of the Gateway.
func (s *stage) gatewayDeployment(args ...string) *appsv1.Deployment {
	labels := map[string]string{gatewayv1.GatewayNameLabelKey: "edge"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: s.namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "gateway", Image: "gateway", Args: append(args, "--kind=Gateway")}}},
			},
		},
	}
}

// said is what the only pod says.
func (s *stage) said(gateways *workload.Gateways) document.Document {
	s.Helper()
	pods := &corev1.PodList{}
	s.must(env.Client.List(s.Context(), pods, client.InNamespace(s.namespace)))
	if len(pods.Items) != 1 {
		s.Fatalf("there are %d pods", len(pods.Items))
	}
	url := fmt.Sprintf("http://%s:%d%s", pods.Items[0].Status.PodIP, gateways.Port, document.Path)
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, url, nil)
	s.must(err)
	response, err := http.DefaultClient.Do(request)
	s.must(err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	s.must(err)
	var doc document.Document
	if err := json.Unmarshal(body, &doc); err != nil {
		s.Fatalf("%v: %s", err, body)
	}
	return doc
}

func TestAServiceThatWaitsForALoadBalancerGetsAnAddress(t *testing.T) {
	s := newStage(t)
	for name, kind := range map[string]corev1.ServiceType{"balanced": corev1.ServiceTypeLoadBalancer, "internal": corev1.ServiceTypeClusterIP} {
		s.must(env.Client.Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
			Spec:       corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 80}}},
		}))
	}
	player := s.play(&watched{Client: env.Client})
	environment.Eventually(t, func() error {
		balanced := &corev1.Service{}
		if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: "balanced"}, balanced); err != nil {
			return err
		}
		if len(balanced.Status.LoadBalancer.Ingress) != 1 || !player.Idle(t.Context()) {
			return fmt.Errorf("it has %+v", balanced.Status.LoadBalancer)
		}
		return nil
	})
	internal := &corev1.Service{}
	s.must(env.Client.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: "internal"}, internal))
	if len(internal.Status.LoadBalancer.Ingress) != 0 {
		t.Errorf("a Service that asks for none has %+v", internal.Status.LoadBalancer)
	}
}
