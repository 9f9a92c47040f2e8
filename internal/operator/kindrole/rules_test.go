package kindrole

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/slipway-dev/slipway/internal/monitor/selection"
)

func rule(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}
}

func TestEachGroupHasARuleThatNamesItsKinds(t *testing.T) {
	builtIn := []apiService{{name: "v1."}, {name: "v1.networking.k8s.io"}, {name: "v1.rbac.authorization.k8s.io"}}
	for name, test := range map[string]struct {
		definitions      []string
		services         []apiService
		include, exclude []string
		want             []rbacv1.PolicyRule
		count            found
	}{
		"nothing": {},
		"groups and resources in order": {
			definitions: []string{"widgets.example.com", "apps.example.org", "gadgets.example.com"},
			services:    []apiService{{name: "v1.example.com", ofDefinitions: true}, {name: "v1.example.org", ofDefinitions: true}},
			want:        []rbacv1.PolicyRule{rule("example.com", "gadgets", "widgets"), rule("example.org", "apps")},
			count:       found{granted: 3},
		},
		"a definition that is not served yet": {
			definitions: []string{"widgets.example.com"}, want: []rbacv1.PolicyRule{rule("example.com", "widgets")}, count: found{granted: 1},
		},
		"a resource called secrets is not the one of the core group": {
			definitions: []string{"secrets.example.com"}, want: []rbacv1.PolicyRule{rule("example.com", "secrets")}, count: found{granted: 1},
		},
		"patterns": {
			definitions: []string{"widgets.example.com", "gadgets.example.com", "apps.example.org"},
			include:     []string{"example.com"}, exclude: []string{"gadgets.*"},
			want: []rbacv1.PolicyRule{rule("example.com", "widgets")}, count: found{granted: 1, excluded: 2},
		},
		"a group that is built in": {
			definitions: []string{"clusterroles.rbac.authorization.k8s.io", "ingresses.networking.k8s.io", "gateways.gateway.networking.k8s.io"},
			want:        []rbacv1.PolicyRule{rule("gateway.networking.k8s.io", "gateways")}, count: found{granted: 1, foreign: 2},
		},
		"a group that another server has, beside definitions": {
			definitions: []string{"tokens.example.com", "tokens.example.org"},
			services:    []apiService{{name: "v1beta1.example.com"}, {name: "v1.example.com", ofDefinitions: true}, {name: "v1.example.org", ofDefinitions: true}},
			want:        []rbacv1.PolicyRule{rule("example.org", "tokens")}, count: found{granted: 1, foreign: 1},
		},
		"names that no definition can have": {
			definitions: []string{"secrets", "secrets.", "*.example.com", "pods.*.com", ".example.com", "pods/exec.example.com", "deployments.apps"},
			count:       found{foreign: 7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := selection.New(test.include, test.exclude)
			if err != nil {
				t.Fatal(err)
			}
			got, count := rules(test.definitions, append(builtIn, test.services...), chosen)
			if len(got) > 0 || len(test.want) > 0 {
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
			if count != test.count {
				t.Errorf("counted %+v, want %+v", count, test.count)
			}
		})
	}
}
