package gatewayapi_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

func logInSettings(change func(*slipwayv1alpha1.OIDCAuth)) *slipwayv1alpha1.GatewayPolicySettings {
	in := &slipwayv1alpha1.OIDCAuth{Issuer: "https://id.example.com", ClientID: "shop", ClientSecretRef: slipwayv1alpha1.OIDCSecret{Name: "login", Key: "secret"}}
	if change != nil {
		change(in)
	}
	return &slipwayv1alpha1.GatewayPolicySettings{Auth: &slipwayv1alpha1.Auth{OIDC: in}}
}

func loginSecret(types.NamespacedName) (map[string][]byte, bool) {
	return map[string][]byte{"issuer": []byte("https://id.example.com"), "secret": []byte("0123456789abcdef")}, true
}

var (
	shopRoute = slipwayv1alpha1.PolicyTargetReference{Kind: "HTTPRoute", Name: "shop"}
	ruleOne   = slipwayv1alpha1.PolicyTargetReference{Kind: "HTTPRoute", Name: "shop", SectionName: "one"}
	ruleTwo   = slipwayv1alpha1.PolicyTargetReference{Kind: "HTTPRoute", Name: "shop", SectionName: "two"}
)

// The operator, which does not know the client secret, and the pods come to the same result.
func TestWhoDoesNotServeJudgesLogInsAlike(t *testing.T) {
	for name, test := range map[string]struct {
		policies []*slipwayv1alpha1.GatewayPolicy
		refused  int // rules
	}{
		"everywhere":                      {[]*slipwayv1alpha1.GatewayPolicy{attachedPolicy("team", "a", shopRoute, logInSettings(nil), nil)}, 0},
		"in the first rule only":          {[]*slipwayv1alpha1.GatewayPolicy{attachedPolicy("team", "a", ruleOne, logInSettings(nil), nil)}, 0},
		"in a rule that gets no requests": {[]*slipwayv1alpha1.GatewayPolicy{attachedPolicy("team", "a", ruleTwo, logInSettings(nil), nil)}, 1},
		"one for the Gateway, another for the rule that gets none": {[]*slipwayv1alpha1.GatewayPolicy{
			attachedPolicy("infra", "a", slipwayv1alpha1.PolicyTargetReference{Kind: "Gateway", Name: "edge"}, logInSettings(nil), nil),
			attachedPolicy("team", "a", ruleTwo, logInSettings(nil), nil), // of another namespace, so with another Secret
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			pods, operator := aGateway(test.policies...), aGateway(test.policies...)
			pods.Authentication = gatewayapi.Authenticate(test.policies, loginSecret)
			operator.Authentication = map[string]gatewayapi.Authentication{}
			for id := range pods.Authentication {
				operator.Authentication[id] = gatewayapi.Authentication{}
			}
			served, judged := gatewayapi.Build(pods), gatewayapi.Build(operator)
			refused := 0
			for i, rule := range served.Rules {
				other := judged.Rules[i]
				if (rule.Fault == nil) != (other.Fault == nil) || rule.Fault != nil && *rule.Fault != *other.Fault {
					t.Errorf("rule %d: the pods say %v, the operator %v", i, rule.Fault, other.Fault)
				}
				if rule.Fault != nil {
					refused++
				} else if rule.Auth != nil && (len(rule.Auth.OIDC.Secrets) != 1 || rule.Auth.OIDC.Scope != other.Auth.OIDC.Scope) {
					t.Errorf("rule %d: the pods log in with %+v", i, rule.Auth.OIDC)
				}
			}
			if refused != test.refused {
				t.Errorf("%d rules are refused", refused)
			}
			for _, parent := range judged.Routes[0].Parents {
				if (parent.Refused != nil) != (test.refused > 0) {
					t.Errorf("the route says %+v", parent.Refused)
				}
			}
		})
	}
}

// Who may write policies in a namespace knows the client secrets there. So no session is shared with another namespace.
func TestPoliciesOfOtherNamespacesShareNoSessions(t *testing.T) {
	scopes := map[string]bool{}
	for _, namespace := range []string{"infra", "team"} {
		target := map[string]slipwayv1alpha1.PolicyTargetReference{"infra": {Kind: "Gateway", Name: "edge"}, "team": shopRoute}[namespace]
		policy := attachedPolicy(namespace, "a", target, logInSettings(nil), nil)
		in := aGateway(policy)
		in.Authentication = gatewayapi.Authenticate(in.GatewayPolicies, loginSecret)
		for _, rule := range gatewayapi.Build(in).Rules {
			scopes[rule.Auth.OIDC.Scope] = true
		}
	}
	if len(scopes) != 2 {
		t.Errorf("the scopes are %v", scopes)
	}
}

func TestOnlyTheClientSecretAndItsIssuerAreNeeded(t *testing.T) {
	of, needs := gatewayapi.CredentialsOf("team", logInSettings(nil).Auth)
	if !needs || of.Secret != (types.NamespacedName{Namespace: "team", Name: "login"}) || len(of.Keys) != 2 || of.Keys[0] != "issuer" || of.Keys[1] != "secret" {
		t.Errorf("got %+v", of)
	}
}

func TestALogInOfAPolicyNeedsItsSecret(t *testing.T) {
	policy := attachedPolicy("team", "a", shopRoute, logInSettings(nil), nil)
	id := gatewayapi.AuthID("team", policy.Spec.Defaults.Auth)
	made := gatewayapi.Authenticate([]*slipwayv1alpha1.GatewayPolicy{policy}, loginSecret)[id]
	if made.Fault != nil || made.Made.OIDC == nil || len(made.Made.OIDC.Secrets) != 1 {
		t.Errorf("got %+v", made)
	}
	made = gatewayapi.Authenticate([]*slipwayv1alpha1.GatewayPolicy{policy}, func(types.NamespacedName) (map[string][]byte, bool) {
		return map[string][]byte{"issuer": []byte("https://evil.test"), "secret": []byte("canary-canary-canary")}, true
	})[id]
	if made.Made != nil || made.Fault == nil || made.Fault.Reason != slipwayv1alpha1.ReasonInvalidSecret || strings.Contains(made.Fault.Message, "canary") {
		t.Errorf("with a Secret for another issuer: got %+v", made)
	}
}
