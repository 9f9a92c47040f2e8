//go:build e2e

package truth

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// The names of the objects of the Gateway API: a Gateway, a route that has been there for longer, and one that a fault is about.
const (
	frontName = "front"
	olderName = "older"
	routeName = "younger"
	rulesName = "rules"
	frontHost = "front.example.com"
)

var (
	theFront  = &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: frontName}}
	theRoute  = &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: routeName}}
	thePolicy = &slipwayv1alpha1.GatewayPolicy{ObjectMeta: metav1.ObjectMeta{Name: rulesName}}
)

// fronted creates an application, and a Gateway with one listener, in clear or with the certificate of the Secret "tls", before it.
func fronted(secure bool) func(*trial) {
	return func(f *trial) {
		class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: gateway.Controller}}
		if err := f.Cluster.Create(f.Context(), class); err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = f.Cluster.Delete(cleanup(), class) })
		listener := gatewayv1.Listener{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}
		if secure {
			f.Create(f.tls("tls", frontHost))
			listener = gatewayv1.Listener{Name: "web", Port: 443, Protocol: gatewayv1.HTTPSProtocolType, TLS: &gatewayv1.ListenerTLSConfig{
				CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "tls"}},
			}}
		}
		f.Create(f.app(), &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: frontName}, Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(class.Name), Listeners: []gatewayv1.Listener{listener},
		}})
		f.Create(httpRoute(olderName, "/", appName))
	}
}

// tls is the Secret with a certificate.
func (f *trial) tls(name, host string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS, Data: f.certificate(host, time.Hour)}
}

// httpRoute leads from a path to a Service.
func httpRoute(name, path, to string) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: frontName}}},
		Rules: []gatewayv1.HTTPRouteRule{{
			Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: ptr(gatewayv1.PathMatchPathPrefix), Value: &path}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
				Name: gatewayv1.ObjectName(to), Port: ptr(gatewayv1.PortNumber(8080)),
			}}}},
		}},
	}}
}

// routed makes the younger route, too.
func routed(f *trial) {
	fronted(false)(f)
	f.Create(httpRoute(routeName, "/younger", appName))
}

// becoming makes of the younger route what httpRoute makes.
func becoming(path, to string) func(*trial) {
	return func(f *trial) {
		livetest.Update(f.Fixture, routeName, &gatewayv1.HTTPRoute{}, func(r *gatewayv1.HTTPRoute) { r.Spec.Rules = httpRoute("", path, to).Spec.Rules })
	}
}

// aimed makes the policy be for another object.
func aimed(kind, name, section string) func(*trial) {
	return func(f *trial) {
		livetest.Update(f.Fixture, rulesName, &slipwayv1alpha1.GatewayPolicy{}, func(p *slipwayv1alpha1.GatewayPolicy) {
			p.Spec.TargetRefs = []slipwayv1alpha1.PolicyTargetReference{{Kind: kind, Name: name, SectionName: section}}
		})
	}
}

// ruled makes a policy for the older route, too.
func ruled(f *trial) {
	fronted(false)(f)
	f.Create(&slipwayv1alpha1.GatewayPolicy{ObjectMeta: metav1.ObjectMeta{Name: rulesName}, Spec: slipwayv1alpha1.GatewayPolicySpec{
		TargetRefs: []slipwayv1alpha1.PolicyTargetReference{{Kind: "HTTPRoute", Name: olderName}},
		Defaults:   &slipwayv1alpha1.GatewayPolicySettings{RateLimit: &slipwayv1alpha1.RateLimit{Requests: 1000}},
	}})
}

// not is a condition that must be False, with the names.
func not(condition, reason string) claim {
	return claim{condition: condition, status: metav1.ConditionFalse, reason: reason, named: true}
}

// standardFaults are those of the Gateway API, and of the policies for its objects.
func standardFaults() map[string]fault {
	notLive := func(reason string) claim {
		return claim{condition: gateway.ConditionLive, status: metav1.ConditionFalse, reason: reason}
	}
	return map[string]fault{
		"an HTTPRoute whose match an older one has": {
			subject: theRoute, usual: true, start: routed, cause: becoming("/", appName), mend: becoming("/younger", appName),
			says:  []claim{not(gateway.ConditionLive, gateway.ReasonOlderRouteFirst)},
			names: []string{`HTTPRoute "older"`, "rules[0]"},
		},
		"an HTTPRoute to a Service that does not exist": {
			subject: theRoute, start: routed, cause: becoming("/younger", "other"), mend: becoming("/younger", appName),
			says:  []claim{not(string(gatewayv1.RouteConditionResolvedRefs), string(gatewayv1.RouteReasonBackendNotFound))},
			names: []string{`Service "other"`, "spec.rules[0].backendRefs[0]"},
		},
		"a listener whose certificate is deleted": {
			subject: theFront, start: fronted(true),
			cause: func(f *trial) { f.Delete(secret("tls", "")) }, mend: func(f *trial) { f.Create(f.tls("tls", frontHost)) },
			says: []claim{
				not(string(gatewayv1.ListenerConditionResolvedRefs), string(gatewayv1.ListenerReasonInvalidCertificateRef)),
				{condition: string(gatewayv1.ListenerConditionProgrammed), status: metav1.ConditionFalse},
			},
			names: []string{`Secret "tls"`, "tls.certificateRefs[0]"},
		},
		"a GatewayPolicy for a route that does not exist": {
			subject: thePolicy, usual: true, start: ruled, cause: aimed("HTTPRoute", "other", ""), mend: aimed("HTTPRoute", olderName, ""),
			says: []claim{
				not(slipwayv1alpha1.ConditionPolicyAccepted, slipwayv1alpha1.ReasonPolicyTargetNotFound), notLive(gateway.ReasonNotAccepted),
			},
			names: []string{`HTTPRoute "other"`, "spec.targetRefs"},
		},
		"a GatewayPolicy for a listener that does not exist": {
			subject: thePolicy, start: ruled, cause: aimed("Gateway", frontName, "none"), mend: aimed("Gateway", frontName, "web"),
			says:  []claim{not(slipwayv1alpha1.ConditionPolicyAccepted, slipwayv1alpha1.ReasonPolicyTargetNotFound), notLive("")},
			names: []string{`"none"`, `Gateway "front"`, "spec.targetRefs"},
		},
		"a GatewayPolicy with keys in a Secret that does not exist": {
			subject: thePolicy, start: ruled,
			cause: func(f *trial) {
				livetest.Update(f.Fixture, rulesName, &slipwayv1alpha1.GatewayPolicy{}, func(p *slipwayv1alpha1.GatewayPolicy) {
					p.Spec.Defaults.Auth = &slipwayv1alpha1.Auth{APIKey: &slipwayv1alpha1.APIKeyAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: "keys"}}}
				})
			},
			says:  []claim{not(slipwayv1alpha1.ConditionPolicyAccepted, slipwayv1alpha1.ReasonPolicyInvalid)},
			names: []string{`Secret "keys"`, "spec.defaults.auth.apiKey.secretRef"},
			mend: func(f *trial) {
				livetest.Update(f.Fixture, rulesName, &slipwayv1alpha1.GatewayPolicy{}, func(p *slipwayv1alpha1.GatewayPolicy) { p.Spec.Defaults.Auth = nil })
			},
		},
	}
}
