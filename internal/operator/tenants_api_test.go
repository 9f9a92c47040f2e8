//go:build apitest

package operator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// beyondEdit is what the operator makes, changes or deletes though the cluster's role edit has no right to it, so that who
// may write objects of Slipway has it done for him. Each was judged: SECURITY.md says why it gives nobody a right, in the
// table of what is made for tenants. A new kind must be judged before it is made.
var beyondEdit = []string{
	"controllerrevisions.apps",
	"httproutes.gateway.networking.k8s.io",
	"rolebindings.rbac.authorization.k8s.io",
	"roles.rbac.authorization.k8s.io",
	"volumesnapshots.snapshot.storage.k8s.io",
}

// ofWholeCluster are what it writes that is no tenant's: objects by name, and what reporting and finalizers need.
func ofWholeCluster(rule *rbacv1.PolicyRule, resource string) bool {
	return len(rule.ResourceNames) > 0 || strings.Contains(resource, "/")
}

// edits are the rules of the cluster's role edit with Slipway in it: what the controller of Kubernetes adds up from the
// roles that are shipped with Kubernetes and with Slipway.
func edits(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, name := range []string{"system:aggregate-to-edit", "system:aggregate-to-view"} {
		role := &rbacv1.ClusterRole{}
		environment.Eventually(t, func() error { return env.Client.Get(t.Context(), types.NamespacedName{Name: name}, role) })
		rules = append(rules, role.Rules...)
	}
	for _, role := range rolesIn(t, "users.yaml") {
		if role.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] == "true" {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

func rolesIn(t *testing.T, file string) []rbacv1.ClusterRole {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", file))
	if err != nil {
		t.Fatal(err)
	}
	var roles []rbacv1.ClusterRole
	for document := range strings.SplitSeq(strings.TrimPrefix(string(raw), "---\n"), "\n---\n") {
		role := rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		roles = append(roles, role)
	}
	return roles
}

func allows(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return len(rule.ResourceNames) == 0 && slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb)
	})
}

// Writing an object of Slipway gives nobody rights that edit does not give, but for what was judged.
func TestWhatTheOperatorMakesForTenantsWasJudged(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	rules, found := edits(t), map[string]bool{}
	for _, rule := range rolesIn(t, "role.yaml")[0].Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				reads := slices.Contains([]string{"get", "list", "watch"}, verb)
				if reads || ofWholeCluster(&rule, resource) || allows(rules, rule.APIGroups[0], resource, verb) {
					continue
				}
				name := strings.TrimSuffix(resource+"."+rule.APIGroups[0], ".")
				found[name] = true
				if !slices.Contains(beyondEdit, name) {
					t.Errorf("the operator may %s %s, and edit may not: judge it, for SECURITY.md", verb, name)
				}
			}
		}
	}
	for _, name := range beyondEdit {
		if !found[name] {
			t.Errorf("%s was judged, and edit allows what the operator does with it, or it does nothing", name)
		}
		if resource, _, _ := strings.Cut(name, "."); !strings.Contains(string(raw), "| `"+resource+"`") {
			t.Errorf("SECURITY.md has no line for %s", resource)
		}
	}
}

// The pods of an APIGateway run what spec.image says. What their Role lets them read, who may write the APIGateway may read.
func TestEditMayReadWhatThePodsOfAGatewayMay(t *testing.T) {
	rules := edits(t)
	gateway := &slipwayv1alpha1.APIGateway{Spec: slipwayv1alpha1.APIGatewaySpec{
		TLS: []slipwayv1alpha1.GatewayTLS{{SecretRef: slipwayv1alpha1.LocalReference{Name: "certificate"}}},
	}}
	gateway.Name, gateway.Namespace = "edge", "team"
	for _, rule := range desired.Role(gateway).Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if !allows(rules, rule.APIGroups[0], resource, verb) {
					t.Errorf("the pods may %s %s.%s, and edit may not", verb, resource, rule.APIGroups[0])
				}
			}
		}
	}
}
