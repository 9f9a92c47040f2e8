package operator

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The role is generated from markers, where a verb too many is easily overlooked.
func TestTheRoleLetsTheOperatorDeleteNeitherWhatServesNorWhatHoldsData(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(raw, &role); err != nil {
		t.Fatal(err)
	}
	// What exposes an APIGateway is replaced when spec.expose says so: the gateway serves on.
	deletable := []string{"controllerrevisions", "horizontalpodautoscalers", "poddisruptionbudgets", "ingresses", "httproutes"}
	for _, rule := range role.Rules {
		for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
			if word == "*" || word == "deletecollection" {
				t.Errorf("%v %v has %q", rule.Resources, rule.Verbs, word)
			}
		}
		if !slices.Contains(rule.Verbs, "delete") {
			continue
		}
		for _, resource := range rule.Resources {
			if !slices.Contains(deletable, resource) {
				t.Errorf("the operator may delete %s", resource)
			}
		}
	}
}
