//go:build apitest

package gateway_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/authority"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// policy is for a Service, and trusts the authorities of a ConfigMap.
func (f *fixture) policy(name, service, bundle string) *gatewayv1.BackendTLSPolicy {
	return &gatewayv1.BackendTLSPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec: gatewayv1.BackendTLSPolicySpec{
			TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: gatewayv1.ObjectName(service)},
			}},
			Validation: gatewayv1.BackendTLSPolicyValidation{
				Hostname: "app.internal", CACertificateRefs: []gatewayv1.LocalObjectReference{{Kind: "ConfigMap", Name: gatewayv1.ObjectName(bundle)}},
			},
		},
	}
}

func bundle(namespace, name string, pem []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"ca.crt": string(pem)}}
}

// waitPolicy waits for a condition in our entry of a policy.
func (f *fixture) waitPolicy(policy *gatewayv1.BackendTLSPolicy, conditionType gatewayv1.PolicyConditionType, status metav1.ConditionStatus, reason gatewayv1.PolicyConditionReason) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(policy); err != nil {
			return err
		}
		for _, entry := range policy.Status.Ancestors {
			if entry.ControllerName == gateway.Controller {
				return has(entry.Conditions, policy.Generation, string(conditionType), status, string(reason))
			}
		}
		return errors.New("no entry of ours")
	})
}

// waitCopy waits until the authorities of a ConfigMap are copied, or are not.
func (f *fixture) waitCopy(g *gatewayv1.Gateway, name types.NamespacedName, want string) {
	f.Helper()
	environment.Eventually(f, func() error {
		copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
		if err := client.IgnoreNotFound(f.get(copies)); err != nil {
			return err
		}
		if copied, _ := copied.FindBundle(copies, name); string(copied.Authorities) != want {
			return fmt.Errorf("the copy of %s is %q", name, copied.Authorities)
		}
		return nil
	})
}

func TestAPolicyIsJudgedAndWhatItTrustsIsCopied(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	ca, other := authority.New(t, "ca").PEM(), authority.New(t, "other").PEM()
	trusted := bundle(f.namespace, "ca", ca)
	name := client.ObjectKeyFromObject(trusted)
	policy, younger := f.policy("app", "app", "ca"), f.policy("app-b", "app", "ca")
	g, route, app := f.gateway(), f.route("shop", "app"), service(f.namespace, "app")
	foreign := gatewayv1.PolicyAncestorStatus{
		AncestorRef:    gatewayv1.ParentReference{Group: ptr(gatewayv1.Group(gatewayv1.GroupName)), Kind: ptr(gatewayv1.Kind("Gateway")), Name: "edge"},
		ControllerName: "example.com/other",
		Conditions:     []metav1.Condition{{Type: "Accepted", Status: "False", Reason: "Foreign", LastTransitionTime: metav1.Now().Rfc3339Copy()}},
	}
	f.create(policy)
	updateStatus(f, policy, func(p *gatewayv1.BackendTLSPolicy) { p.Status.Ancestors = []gatewayv1.PolicyAncestorStatus{foreign} })
	f.create(f.class, g, app, route, younger)

	const accepted, resolved = gatewayv1.PolicyConditionAccepted, gatewayv1.BackendTLSPolicyConditionResolvedRefs
	f.waitPolicy(policy, accepted, metav1.ConditionFalse, gatewayv1.BackendTLSPolicyReasonNoValidCACertificate)
	f.waitPolicy(policy, resolved, metav1.ConditionFalse, gatewayv1.BackendTLSPolicyReasonInvalidCACertificateRef)
	f.create(trusted)
	f.waitPolicy(policy, accepted, metav1.ConditionTrue, gatewayv1.PolicyReasonAccepted)
	f.waitPolicy(policy, resolved, metav1.ConditionTrue, gatewayv1.BackendTLSPolicyReasonResolvedRefs)
	f.waitPolicy(younger, accepted, metav1.ConditionFalse, gatewayv1.PolicyReasonConflicted)
	f.waitCopy(g, name, string(ca))
	update(f, trusted, func(b *corev1.ConfigMap) { b.Data["ca.crt"] = string(other) })
	f.waitCopy(g, name, string(other))
	update(f, trusted, func(b *corev1.ConfigMap) { b.Data["ca.crt"] = "x" })
	f.waitPolicy(policy, accepted, metav1.ConditionFalse, gatewayv1.BackendTLSPolicyReasonNoValidCACertificate)
	f.waitCopy(g, name, "")
	update(f, trusted, func(b *corev1.ConfigMap) { b.Data["ca.crt"] = string(ca) })
	f.waitCopy(g, name, string(ca))

	// A policy may name a port.
	update(f, policy, func(p *gatewayv1.BackendTLSPolicy) {
		p.Spec.TargetRefs[0].SectionName = ptr(gatewayv1.SectionName("tls"))
	})
	f.waitPolicy(policy, accepted, metav1.ConditionFalse, gatewayv1.PolicyReasonTargetNotFound)
	update(f, app, func(s *corev1.Service) { s.Spec.Ports[0].Name = "tls" })
	f.waitPolicy(policy, accepted, metav1.ConditionTrue, gatewayv1.PolicyReasonAccepted)

	// A policy for no Service of the Gateway any more has no entry of it, and what it trusts goes.
	f.delete(younger)
	update(f, policy, func(p *gatewayv1.BackendTLSPolicy) { p.Spec.TargetRefs[0].Name = "another" })
	environment.Eventually(t, func() error {
		if err := f.get(policy); err != nil {
			return err
		}
		if diff := cmp.Diff([]gatewayv1.PolicyAncestorStatus{foreign}, policy.Status.Ancestors); diff != "" {
			return fmt.Errorf("entries (-want +got):\n%s", diff)
		}
		return nil
	})
	f.waitCopy(g, name, "")
	update(f, policy, func(p *gatewayv1.BackendTLSPolicy) { p.Spec.TargetRefs[0].Name = "app" })
	f.waitPolicy(policy, accepted, metav1.ConditionTrue, gatewayv1.PolicyReasonAccepted)
	f.delete(g)
	environment.Eventually(t, func() error {
		if err := f.get(policy); err != nil {
			return err
		}
		if len(policy.Status.Ancestors) != 1 || policy.Status.Ancestors[0].ControllerName != foreign.ControllerName {
			return fmt.Errorf("entries after the Gateway has gone: %+v", policy.Status.Ancestors)
		}
		return nil
	})
}

func TestAListenerThatChecksClientsIsProgrammedWhenEveryPodDoes(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	certificate, authorities := f.certificate(f.namespace, "edge-tls"), bundle(f.other, "clients", authority.New(t, "ca").PEM())
	own := f.certificate(f.namespace, "own")
	inOther := gatewayv1.Namespace(f.other)
	g := f.gateway(secure(f.namespace, "edge-tls"), func(g *gatewayv1.Gateway) {
		g.Spec.TLS = &gatewayv1.GatewayTLSConfig{
			Backend: &gatewayv1.GatewayBackendTLS{ClientCertificateRef: &gatewayv1.SecretObjectReference{Name: "own"}},
			Frontend: &gatewayv1.FrontendTLSConfig{Default: gatewayv1.TLSConfig{Validation: &gatewayv1.FrontendTLSValidation{
				CACertificateRefs: []gatewayv1.ObjectReference{{Kind: "ConfigMap", Name: "clients", Namespace: &inOther}},
			}}},
		}
	})
	f.create(certificate, authorities, f.class, g)
	f.waitListener(g, "tls", gatewayv1.ListenerConditionAccepted, metav1.ConditionFalse, gatewayv1.ListenerReasonNoValidCACertificate)
	f.waitListener(g, "tls", gatewayv1.ListenerConditionResolvedRefs, metav1.ConditionFalse, gatewayv1.ListenerReasonRefNotPermitted)
	f.waitGateway(g, gatewayv1.GatewayConditionResolvedRefs, metav1.ConditionFalse, gatewayv1.GatewayReasonInvalidClientCertificateRef)
	f.waitCopy(g, client.ObjectKeyFromObject(authorities), "")

	grant := f.grant()
	grant.Spec.To = []gatewayv1.ReferenceGrantTo{{Kind: "ConfigMap"}}
	f.create(grant, own)
	f.waitListener(g, "tls", gatewayv1.ListenerConditionAccepted, metav1.ConditionTrue, gatewayv1.ListenerReasonAccepted)
	f.waitGateway(g, gatewayv1.GatewayConditionResolvedRefs, metav1.ConditionTrue, gatewayv1.GatewayReasonResolvedRefs)
	f.waitCopy(g, client.ObjectKeyFromObject(authorities), authorities.Data["ca.crt"])
	role := child(f, g, &rbacv1.Role{})
	environment.Eventually(t, func() error {
		if err := f.get(role); err != nil {
			return err
		}
		want := []string{"edge-tls", "own", desired.CopiesName(g)}
		if diff := cmp.Diff(want, role.Rules[0].ResourceNames); diff != "" {
			return fmt.Errorf("the pods may read (-want +got):\n%s", diff)
		}
		return nil
	})

	f.running(g)
	shown := fmt.Sprintf("%s/edge-tls@%s", f.namespace, certificate.ResourceVersion)
	trusting := func(version string) document.ServedListener {
		parts := []string{shown, "clients: optional false", fmt.Sprintf("clients: %s/clients@%s", f.other, version)}
		return document.ServedListener{Name: "tls", Digest: document.ListenerDigest(443, true, "", parts)}
	}
	// A pod that lets everybody in does not serve the listener.
	f.serve(g, []document.ServedListener{web(), {Name: "tls", Digest: document.ListenerDigest(443, true, "", []string{shown})}})
	f.waitListener(g, "tls", gatewayv1.ListenerConditionProgrammed, metav1.ConditionFalse, gatewayv1.ListenerReasonPending)
	f.serve(g, []document.ServedListener{web(), trusting(authorities.ResourceVersion)})
	f.waitListener(g, "tls", gatewayv1.ListenerConditionProgrammed, metav1.ConditionTrue, gatewayv1.ListenerReasonProgrammed)
	update(f, authorities, func(b *corev1.ConfigMap) { b.Data["ca.crt"] = string(authority.New(t, "next").PEM()) })
	f.waitListener(g, "tls", gatewayv1.ListenerConditionProgrammed, metav1.ConditionFalse, gatewayv1.ListenerReasonPending)
	f.serve(g, []document.ServedListener{web(), trusting(authorities.ResourceVersion)})
	f.waitListener(g, "tls", gatewayv1.ListenerConditionProgrammed, metav1.ConditionTrue, gatewayv1.ListenerReasonProgrammed)

	update(f, g, func(g *gatewayv1.Gateway) {
		g.Spec.TLS.Frontend.Default.Validation.Mode = gatewayv1.AllowInsecureFallback
	})
	f.waitGateway(g, gatewayv1.GatewayConditionInsecureFrontendValidationMode, metav1.ConditionTrue, gatewayv1.GatewayReasonConfigurationChanged)
	update(f, g, func(g *gatewayv1.Gateway) { g.Spec.TLS.Frontend.Default.Validation.Mode = gatewayv1.AllowValidOnly })
	environment.Eventually(t, func() error {
		if err := f.get(g); err != nil {
			return err
		}
		for _, c := range g.Status.Conditions {
			if c.Type == string(gatewayv1.GatewayConditionInsecureFrontendValidationMode) {
				return errors.New("the condition is still there")
			}
		}
		return nil
	})
	f.delete(grant)
	f.waitListener(g, "tls", gatewayv1.ListenerConditionAccepted, metav1.ConditionFalse, gatewayv1.ListenerReasonNoValidCACertificate)
	f.waitCopy(g, client.ObjectKeyFromObject(authorities), "")
}
