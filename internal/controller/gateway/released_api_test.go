//go:build apitest

package gateway_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// released are what a Gateway has of its first class.
type released struct {
	*fixture

	deployment *appsv1.Deployment
	service    *corev1.Service
}

func (f *fixture) released(g *gatewayv1.Gateway) *released {
	return &released{fixture: f, deployment: child(f, g, &appsv1.Deployment{}), service: child(f, g, &corev1.Service{})}
}

// is waits until there are as many pods, and a Service of that type, both retired or not.
func (f *released) is(pods int32, of corev1.ServiceType, retired bool) {
	f.Helper()
	want := fmt.Sprintf("%d pods, %s, retired %t %t", pods, of, retired, retired)
	environment.Eventually(f, func() error {
		if err := f.get(f.deployment); err != nil {
			return err
		}
		if err := f.get(f.service); err != nil {
			return err
		}
		_, a := f.deployment.Annotations["slipway.dev/retired"]
		_, b := f.service.Annotations["slipway.dev/retired"]
		if got := fmt.Sprintf("%d pods, %s, retired %t %t", *f.deployment.Spec.Replicas, f.service.Spec.Type, a, b); got != want {
			return fmt.Errorf("there are %s, want %s", got, want)
		}
		return nil
	})
}

// stays sees that nothing of it changes.
func (f *released) stays() {
	f.Helper()
	environment.Quiet(f, time.Second, func() string {
		if err := f.get(f.deployment); err != nil {
			f.Fatal(err)
		}
		return f.deployment.ResourceVersion
	})
}

// foreignClass is a class of another controller.
func (f *fixture) foreignClass() *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: f.other}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/other"}}
}

// Another implementation serves the Gateway, so what the released class has left must not. It comes back with the class.
func TestWhatAFormerClassHasLeftIsRetired(t *testing.T) {
	f := newFixture(t)
	operator := f.startOperator(nil)
	g, foreign := f.gateway(secure(f.other, "web")), f.foreignClass()
	secret := f.certificate(f.other, "web")
	f.create(f.class, foreign, f.grant(), secret, g)
	f.running(g)
	left := f.released(g)
	update(f, left.deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr(int32(3)) })
	left.is(3, corev1.ServiceTypeLoadBalancer, false)
	f.getsCopy(g, secret, true)
	copies := f.copiesOf(g)

	ours := g.Spec.GatewayClassName
	update(f, g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(foreign.Name) })
	left.is(0, corev1.ServiceTypeClusterIP, true)
	environment.Eventually(t, func() error {
		if err := f.get(copies); err != nil {
			return err
		}
		if len(copies.Data) > 0 {
			return fmt.Errorf("%d keys of copies are left", len(copies.Data))
		}
		return nil
	})
	for _, port := range left.service.Spec.Ports {
		if port.NodePort != 0 {
			t.Errorf("port %d is open on every node", port.Port)
		}
	}

	// It is done once. Who scales it up afterwards wants it so.
	update(f, left.deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr(int32(1)) })
	left.is(1, corev1.ServiceTypeClusterIP, true)
	operator.Stop(t)
	f.startOperator(nil)
	f.touch(g)
	left.stays()
	update(f, left.deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr(int32(0)) })

	update(f, g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = ours })
	left.is(3, corev1.ServiceTypeLoadBalancer, false)
	f.getsCopy(g, secret, true)
}

func (f *fixture) copiesOf(g *gatewayv1.Gateway) *corev1.Secret {
	copies := child(f, g, &corev1.Secret{})
	copies.Name += "-certificates"
	return copies
}

// An autoscaler leaves a Deployment without pods alone, and begins again with what there was.
func TestWhatAnAutoscalerOwnsIsRetiredToo(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	own := parameters(f.namespace, "edge", slipwayv1alpha1.GatewayParametersSpec{
		Autoscaling: &slipwayv1alpha1.Autoscaling{MinReplicas: ptr(int32(2)), MaxReplicas: 5},
		Resources:   &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
		Service:     &slipwayv1alpha1.GatewayService{Type: "LoadBalancer", ExternalTrafficPolicy: "Local", LoadBalancerClass: ptr("example.com/fast")},
	})
	g, foreign := f.gateway(naming("GatewayParameters", own.Name)), f.foreignClass()
	f.create(own, f.class, foreign, g)
	f.running(g)
	left := f.released(g)
	left.is(2, corev1.ServiceTypeLoadBalancer, false)
	update(f, left.deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr(int32(4)) }) // as the autoscaler does
	ours := g.Spec.GatewayClassName
	update(f, g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(foreign.Name) })
	left.is(0, corev1.ServiceTypeClusterIP, true)
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: left.deployment.Name, Namespace: f.namespace}}
	if err := f.get(autoscaler); err != nil {
		t.Errorf("the autoscaler: %v", err)
	}
	update(f, g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = ours })
	left.is(4, corev1.ServiceTypeLoadBalancer, false)
	if s := left.service.Spec; s.LoadBalancerClass == nil || *s.LoadBalancerClass != "example.com/fast" || s.ExternalTrafficPolicy != "Local" {
		t.Errorf("the Service has class %v and policy %s", s.LoadBalancerClass, s.ExternalTrafficPolicy)
	}
}

// What serves is not taken away while nobody else is known to serve: for a class that has gone, or that is nowhere.
func TestNothingIsRetiredForAClassThatIsNotThere(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g, foreign := f.gateway(), f.foreignClass()
	f.create(f.class, g)
	f.running(g)
	left := f.released(g)
	f.delete(f.class)
	f.touch(g)
	left.stays()
	update(f, g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(foreign.Name) })
	left.stays()
	left.is(1, corev1.ServiceTypeLoadBalancer, false)

	// The class comes, and is another controller's.
	f.create(foreign)
	left.is(0, corev1.ServiceTypeClusterIP, true)
	// A class of the former name does not bring it back when it is a foreign one, nor when it goes again.
	again := f.newClass()
	again.Spec.ControllerName = foreign.Spec.ControllerName
	f.create(again)
	update(f, g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(again.Name) })
	f.delete(again)
	f.touch(g)
	left.stays()
	left.is(0, corev1.ServiceTypeClusterIP, true)
}

// A Deployment of somebody else is not touched, whatever its labels say.
func TestNothingOfOthersIsRetired(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g, foreign := f.gateway(), f.foreignClass()
	f.create(f.class, foreign, g)
	f.running(g)
	left := f.released(g)
	if err := f.get(left.deployment); err != nil {
		t.Fatal(err)
	}
	theirs := left.deployment.DeepCopy()
	theirs.ObjectMeta = metav1.ObjectMeta{Name: "theirs", Namespace: g.Namespace, Labels: left.deployment.Labels, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: "any", UID: types.UID("any"), Controller: ptr(true),
	}}}
	theirs.Spec.Replicas = ptr(int32(2))
	f.create(theirs)
	update(f, g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(foreign.Name) })
	left.is(0, corev1.ServiceTypeClusterIP, true)
	left.stays()
	if err := f.get(theirs); err != nil || *theirs.Spec.Replicas != 2 {
		t.Errorf("theirs has %d pods (%v)", *theirs.Spec.Replicas, err)
	}
}

// fixedAnswer answers reads of one object with what it is told to say, until it is off.
type fixedAnswer struct {
	next       http.RoundTripper
	path, body string
	status     int
	off        atomic.Bool
	times      atomic.Int64
}

func (s *fixedAnswer) RoundTrip(request *http.Request) (*http.Response, error) {
	if s.off.Load() || request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, s.path) {
		return s.next.RoundTrip(request)
	}
	s.times.Add(1)
	header := http.Header{"Content-Type": []string{"application/json"}}
	return &http.Response{StatusCode: s.status, Header: header, Request: request, Body: io.NopCloser(strings.NewReader(s.body))}, nil
}

// A cache may be old, and a read may fail. What serves is taken away when the API server says whose the class is.
func TestNothingIsRetiredBeforeTheAPIServerHasSaidWhoseTheClassIs(t *testing.T) {
	for name, answer := range map[string]*fixedAnswer{
		"it belongs to Slipway": {status: http.StatusOK, body: `{"apiVersion":"gateway.networking.k8s.io/v1","kind":"GatewayClass","spec":{"controllerName":"slipway.dev/gateway"}}`},
		"it may not be read":    {status: http.StatusForbidden, body: `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403}`},
		"it is not there":       {status: http.StatusNotFound, body: `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`},
		"nobody answers":        {status: http.StatusInternalServerError, body: `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"InternalError","code":500}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			g, foreign := f.gateway(), f.foreignClass()
			live := &fixedAnswer{path: "/gatewayclasses/" + foreign.Name, body: answer.body, status: answer.status}
			f.startOperator(func(config *rest.Config) {
				config.Wrap(func(next http.RoundTripper) http.RoundTripper { live.next = next; return live })
			})
			f.create(f.class, foreign, g)
			f.running(g)
			left := f.released(g)
			update(f, g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(foreign.Name) })
			environment.Eventually(t, func() error {
				if live.times.Load() == 0 {
					return errors.New("the API server was not asked")
				}
				return nil
			})
			left.stays()
			left.is(1, corev1.ServiceTypeLoadBalancer, false)
			live.off.Store(true)
			f.touch(g)
			left.is(0, corev1.ServiceTypeClusterIP, true)
		})
	}
}
