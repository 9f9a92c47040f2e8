//go:build apitest

package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// parameters are some in a namespace.
func parameters(namespace, name string, spec slipwayv1alpha1.GatewayParametersSpec) *slipwayv1alpha1.GatewayParameters {
	return &slipwayv1alpha1.GatewayParameters{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
}

// withParameters has a class name parameters.
func withParameters(class *gatewayv1.GatewayClass, of *slipwayv1alpha1.GatewayParameters) {
	class.Spec.ParametersRef = &gatewayv1.ParametersReference{
		Group: slipwayv1alpha1.GroupName, Kind: "GatewayParameters", Name: of.Name, Namespace: ptr(gatewayv1.Namespace(of.Namespace)),
	}
}

// naming has a Gateway name parameters of its own.
func naming(kind, name string) func(*gatewayv1.Gateway) {
	return func(g *gatewayv1.Gateway) {
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{
			ParametersRef: &gatewayv1.LocalParametersReference{Group: slipwayv1alpha1.GroupName, Kind: gatewayv1.Kind(kind), Name: name},
		}
	}
}

// message is that of a condition.
func message(conditions []metav1.Condition, conditionType string) string {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}

// eventuallyIs waits until an object is as described.
func eventuallyIs[T client.Object](f *fixture, object T, want string, describe func(T) string) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(object); err != nil {
			return err
		}
		if got := describe(object); got != want {
			return fmt.Errorf("%T %q is %s, want %s", object, object.GetName(), got, want)
		}
		return nil
	})
}

// arguments are those of the pods that are about parameters, with the number of pods.
func arguments(d *appsv1.Deployment) string {
	var list []string
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if strings.Contains(arg, "proxies") || strings.Contains(arg, "percent") || strings.Contains(arg, "drain-timeout") {
			list = append(list, arg)
		}
	}
	return fmt.Sprintf("%d pods, %s", *d.Spec.Replicas, strings.Join(list, " "))
}

func TestParametersOfTheGatewayAndOfItsClassAreMet(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	ofClass := parameters(f.other, "every", slipwayv1alpha1.GatewayParametersSpec{
		Replicas: ptr(int32(3)), DrainSeconds: ptr(int32(7)),
		Service: &slipwayv1alpha1.GatewayService{Type: "LoadBalancer", ExternalTrafficPolicy: "Local", LoadBalancerClass: ptr("example.com/fast")},
	})
	own := parameters(f.namespace, "edge", slipwayv1alpha1.GatewayParametersSpec{TrustedProxies: []string{"10.0.0.0/8"}})
	withParameters(f.class, ofClass)
	g := f.gateway(naming("GatewayParameters", own.Name))
	f.create(ofClass, own, f.class, g)
	f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionTrue, gatewayv1.GatewayReasonAccepted)
	deployment, exposed := child(f, g, &appsv1.Deployment{}), child(f, g, &corev1.Service{})
	describe := func(s *corev1.Service) string {
		class := "no class"
		if s.Spec.LoadBalancerClass != nil {
			class = *s.Spec.LoadBalancerClass
		}
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Spec.Type, class, s.Spec.ExternalTrafficPolicy))
	}
	eventuallyIs(f, deployment, "3 pods, --trusted-proxies=10.0.0.0/8 --drain-timeout=7s", arguments)
	eventuallyIs(f, exposed, "LoadBalancer example.com/fast Local", describe)
	if err := f.get(child(f, g, &policyv1.PodDisruptionBudget{})); err != nil {
		t.Error(err)
	}

	// What the API server does not take is said, and the rest is met.
	update(f, ofClass, func(p *slipwayv1alpha1.GatewayParameters) {
		p.Spec.DrainSeconds, p.Spec.Service.LoadBalancerClass = ptr(int32(8)), ptr("example.com/slow")
	})
	eventuallyIs(f, deployment, "3 pods, --trusted-proxies=10.0.0.0/8 --drain-timeout=8s", arguments)
	environment.Eventually(t, func() error {
		if err := f.get(g); err != nil {
			return err
		}
		said := message(g.Status.Conditions, "Programmed")
		for _, want := range []string{"Service", exposed.Name, "spec.loadBalancerClass"} {
			if !strings.Contains(said, want) {
				return fmt.Errorf("Programmed says %q, want %q", said, want)
			}
		}
		return nil
	})
	update(f, ofClass, func(p *slipwayv1alpha1.GatewayParameters) {
		p.Spec.DrainSeconds, p.Spec.Service.LoadBalancerClass = ptr(int32(7)), ptr("example.com/fast")
	})
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionFalse, gatewayv1.GatewayReasonAddressNotAssigned)

	// Those of the Gateway win.
	update(f, own, func(p *slipwayv1alpha1.GatewayParameters) {
		p.Spec.Replicas, p.Spec.AccessLog = ptr(int32(1)), &slipwayv1alpha1.AccessLog{SamplePercent: ptr(int32(5))}
		p.Spec.Service = &slipwayv1alpha1.GatewayService{Type: "ClusterIP"}
	})
	eventuallyIs(f, deployment, "1 pods, --trusted-proxies=10.0.0.0/8 --access-log-sample-percent=5 --drain-timeout=7s", arguments)
	eventuallyIs(f, exposed, "ClusterIP no class", describe)
	environment.Eventually(t, func() error {
		if err := f.get(child(f, g, &policyv1.PodDisruptionBudget{})); !apierrors.IsNotFound(err) {
			return fmt.Errorf("there is a budget for a single pod (%w)", err)
		}
		return nil
	})

	// An autoscaler begins with the pods that there are, and has them to itself.
	update(f, own, func(p *slipwayv1alpha1.GatewayParameters) { p.Spec.Replicas = ptr(int32(4)) })
	eventuallyIs(f, deployment, "4 pods, --trusted-proxies=10.0.0.0/8 --access-log-sample-percent=5 --drain-timeout=7s", arguments)
	update(f, own, func(p *slipwayv1alpha1.GatewayParameters) {
		p.Spec.Replicas, p.Spec.Autoscaling = nil, &slipwayv1alpha1.Autoscaling{MinReplicas: ptr(int32(2)), MaxReplicas: 6}
	})
	eventuallyIs(f, child(f, g, &autoscalingv2.HorizontalPodAutoscaler{}), "2 to 6", func(a *autoscalingv2.HorizontalPodAutoscaler) string {
		return fmt.Sprintf("%d to %d", *a.Spec.MinReplicas, a.Spec.MaxReplicas)
	})
	update(f, deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr(int32(5)) })
	update(f, ofClass, func(p *slipwayv1alpha1.GatewayParameters) { p.Spec.DrainSeconds = ptr(int32(9)) })
	eventuallyIs(f, deployment, "5 pods, --trusted-proxies=10.0.0.0/8 --access-log-sample-percent=5 --drain-timeout=9s", arguments)

	// Without them, all is as it was.
	update(f, g, func(g *gatewayv1.Gateway) { g.Spec.Infrastructure = nil })
	eventuallyIs(f, deployment, "3 pods, --drain-timeout=9s", arguments)
	update(f, f.class, func(c *gatewayv1.GatewayClass) { c.Spec.ParametersRef = nil })
	eventuallyIs(f, deployment, "1 pods, --drain-timeout=30s", arguments)
	environment.Eventually(t, func() error {
		if err := f.get(child(f, g, &autoscalingv2.HorizontalPodAutoscaler{})); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the autoscaler is still there (%w)", err)
		}
		return nil
	})
}

func TestParametersThatCannotBeUsedAreSaidAndTakeNothingAway(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	own := parameters(f.namespace, "edge", slipwayv1alpha1.GatewayParametersSpec{Replicas: ptr(int32(2))})
	g := f.gateway(naming("GatewayParameters", "missing"))
	f.create(f.class, own, g)
	refused := func(want string) {
		t.Helper()
		f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionFalse, gatewayv1.GatewayReasonInvalidParameters)
		f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionFalse, gatewayv1.GatewayReasonInvalid)
		environment.Eventually(t, func() error {
			if err := f.get(g); err != nil {
				return err
			}
			if got := message(g.Status.Conditions, "Accepted"); !strings.Contains(got, want) {
				return fmt.Errorf("Accepted says %q, want %q", got, want)
			}
			return nil
		})
	}
	refused(`spec.infrastructure.parametersRef: there is no GatewayParameters "missing" in namespace "` + f.namespace + `"`)
	if err := f.get(child(f, g, &appsv1.Deployment{})); !apierrors.IsNotFound(err) {
		t.Errorf("there are pods that nobody has asked for (%v)", err)
	}

	update(f, g, naming("GatewayParameters", own.Name))
	f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionTrue, gatewayv1.GatewayReasonAccepted)
	deployment := child(f, g, &appsv1.Deployment{})
	eventuallyIs(f, deployment, "2 pods, --drain-timeout=30s", arguments)

	f.delete(own)
	refused(`there is no GatewayParameters "edge"`)
	update(f, g, naming("ConfigMap", own.Name))
	refused(`spec.infrastructure.parametersRef: ConfigMap of group "slipway.dev" is not supported`)
	// What there is stays, and is kept: the ports follow the listeners.
	update(f, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "another" })
	eventuallyIs(f, deployment, "2 pods, --drain-timeout=30s", func(d *appsv1.Deployment) string {
		if d.Spec.Template.Spec.Containers[0].Image == "another" {
			return "of another image"
		}
		return arguments(d)
	})
	update(f, g, func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: "alt", Port: 8080, Protocol: gatewayv1.HTTPProtocolType})
	})
	eventuallyIs(f, child(f, g, &corev1.Service{}), "2", func(s *corev1.Service) string { return fmt.Sprint(len(s.Spec.Ports)) })

	// Parameters that contradict those of the class.
	ofClass := parameters(f.other, "every", slipwayv1alpha1.GatewayParametersSpec{Autoscaling: &slipwayv1alpha1.Autoscaling{MaxReplicas: 3}})
	again := parameters(f.namespace, "again", slipwayv1alpha1.GatewayParametersSpec{Resources: &slipwayv1alpha1.ResourceRequirements{}})
	f.create(ofClass, again)
	update(f, f.class, func(c *gatewayv1.GatewayClass) { withParameters(c, ofClass) })
	update(f, g, naming("GatewayParameters", again.Name))
	refused("contradict each other: spec.resources.requests.cpu is required with spec.autoscaling")
	eventuallyIs(f, deployment, "2 pods, --drain-timeout=30s", arguments)
	update(f, again, func(p *slipwayv1alpha1.GatewayParameters) {
		p.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	})
	f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionTrue, gatewayv1.GatewayReasonAccepted)
}

func TestAClassWhoseParametersCannotBeUsedIsNotAccepted(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	of := parameters(f.other, "every", slipwayv1alpha1.GatewayParametersSpec{Replicas: ptr(int32(2))})
	withParameters(f.class, of)
	g := f.gateway()
	f.create(f.class, g)
	says := func(status metav1.ConditionStatus, reason gatewayv1.GatewayClassConditionReason, want string) {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := f.get(f.class); err != nil {
				return err
			}
			got := message(f.class.Status.Conditions, "Accepted")
			if !strings.Contains(got, want) {
				return fmt.Errorf("Accepted says %q, want %q", got, want)
			}
			return has(f.class.Status.Conditions, f.class.Generation, "Accepted", status, string(reason))
		})
	}
	const invalid = gatewayv1.GatewayClassReasonInvalidParameters
	says(metav1.ConditionFalse, invalid, `there is no GatewayParameters "every" in namespace "`+f.other+`"`)
	f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionFalse, gatewayv1.GatewayReasonInvalidParameters)
	if err := f.get(child(f, g, &appsv1.Deployment{})); !apierrors.IsNotFound(err) {
		t.Errorf("there are pods of a class that is not accepted (%v)", err)
	}

	f.create(of)
	says(metav1.ConditionTrue, gatewayv1.GatewayClassReasonAccepted, "")
	deployment := child(f, g, &appsv1.Deployment{})
	eventuallyIs(f, deployment, "2 pods, --drain-timeout=30s", arguments)

	update(f, f.class, func(c *gatewayv1.GatewayClass) { c.Spec.ParametersRef.Namespace = nil })
	says(metav1.ConditionFalse, invalid, "spec.parametersRef.namespace is required")
	update(f, f.class, func(c *gatewayv1.GatewayClass) {
		c.Spec.ParametersRef.Namespace = ptr(gatewayv1.Namespace("elsewhere"))
	})
	says(metav1.ConditionFalse, invalid, `the operator does not watch namespace "elsewhere"`)
	f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionFalse, gatewayv1.GatewayReasonInvalidParameters)
	if got := message(g.Status.Conditions, "Accepted"); !strings.HasPrefix(got, fmt.Sprintf("GatewayClass %q: spec.parametersRef", f.class.Name)) {
		t.Errorf("the Gateway says %q", got)
	}
	eventuallyIs(f, deployment, "2 pods, --drain-timeout=30s", arguments)

	// Nobody knows the parameters of a class that was deleted. What they asked for stays.
	f.delete(f.class)
	f.touch(g)
	update(f, deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr(int32(7)) })
	eventuallyIs(f, deployment, "2 pods, --drain-timeout=30s", arguments)
}

// A Gateway is not Programmed while a pod serves with other settings.
func TestAPodThatServesWithOldParametersIsWaitedFor(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	own := parameters(f.namespace, "edge", slipwayv1alpha1.GatewayParametersSpec{})
	g := f.gateway(naming("GatewayParameters", own.Name))
	f.create(f.class, own, g)
	f.running(g)
	f.serve(g, []document.ServedListener{web()})
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)
	update(f, own, func(p *slipwayv1alpha1.GatewayParameters) { p.Spec.TrustedProxies = []string{"10.0.0.0/8"} })
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionFalse, gatewayv1.GatewayReasonPending)
	f.waitListener(g, "web", gatewayv1.ListenerConditionProgrammed, metav1.ConditionFalse, gatewayv1.ListenerReasonPending)
	f.serve(g, []document.ServedListener{{Name: "web", Digest: document.ListenerDigest(80, false, "", []string{"--trusted-proxies=10.0.0.0/8"})}})
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)
}

func TestTheAPIServerRefusesParametersThatCannotBeMeant(t *testing.T) {
	f := newFixture(t)
	for name, tc := range map[string]struct {
		change func(*slipwayv1alpha1.GatewayParametersSpec)
		want   string
	}{
		"no pod":   {func(s *slipwayv1alpha1.GatewayParametersSpec) { s.Replicas = ptr(int32(0)) }, "spec.replicas"},
		"no range": {func(s *slipwayv1alpha1.GatewayParametersSpec) { s.TrustedProxies = []string{"10.0.0.1"} }, "spec.trustedProxies"},
		"a source without bits": {func(s *slipwayv1alpha1.GatewayParametersSpec) {
			s.ProxyProtocol = &slipwayv1alpha1.ProxyProtocol{Sources: []string{"lb"}}
		}, "spec.proxyProtocol.sources"},
		"an unknown mode": {func(s *slipwayv1alpha1.GatewayParametersSpec) {
			s.ProxyProtocol = &slipwayv1alpha1.ProxyProtocol{Mode: "Maybe"}
		}, "spec.proxyProtocol.mode"},
		"an unknown type": {func(s *slipwayv1alpha1.GatewayParametersSpec) {
			s.Service = &slipwayv1alpha1.GatewayService{Type: "ExternalName"}
		}, "spec.service.type"},
		"nothing to measure by": {func(s *slipwayv1alpha1.GatewayParametersSpec) {
			s.Autoscaling, s.Resources = &slipwayv1alpha1.Autoscaling{MaxReplicas: 3}, &slipwayv1alpha1.ResourceRequirements{}
		}, "spec.resources.requests.cpu is required"},
	} {
		t.Run(name, func(t *testing.T) {
			p := parameters(f.namespace, "wrong", slipwayv1alpha1.GatewayParametersSpec{})
			tc.change(&p.Spec)
			if err := env.Client.Create(t.Context(), p); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error about %s", err, tc.want)
			}
		})
	}
	p := parameters(f.namespace, "right", slipwayv1alpha1.GatewayParametersSpec{ProxyProtocol: &slipwayv1alpha1.ProxyProtocol{}})
	f.create(p)
	if diff := cmp.Diff(slipwayv1alpha1.ProxyProtocolRequired, p.Spec.ProxyProtocol.Mode); diff != "" {
		t.Error(diff)
	}
}

// Pods start without a Secret to pull their image with, so they say nothing of it. It is looked for in the namespace of the Gateway,
// wherever the parameters are.
func TestAPullSecretThatDoesNotExistIsTold(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	ofClass := parameters(f.other, "every", slipwayv1alpha1.GatewayParametersSpec{
		ImagePullSecrets: []slipwayv1alpha1.LocalReference{{Name: "registry"}},
	})
	withParameters(f.class, ofClass)
	g := f.gateway()
	f.create(ofClass, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: f.other}}, f.class, g)
	reported := func(want bool) {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := f.get(g); err != nil {
				return err
			}
			said := message(g.Status.Conditions, gateway.ConditionPullSecretMissing)
			if missing := strings.Contains(said, `Secret "registry" does not exist (spec.imagePullSecrets[0] of its GatewayParameters)`); missing != want {
				return fmt.Errorf("it says %q in %+v", said, g.Status.Conditions)
			}
			if said != "" && !want {
				return fmt.Errorf("it says %q", said)
			}
			return nil
		})
	}
	reported(true)
	here := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: f.namespace}}
	f.create(here)
	reported(false)
	f.delete(here)
	reported(true)
	update(f, ofClass, func(p *slipwayv1alpha1.GatewayParameters) { p.Spec.ImagePullSecrets = nil })
	reported(false)
}
