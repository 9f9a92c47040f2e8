package operator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/contentkey"
	"github.com/slipway-dev/slipway/internal/operator/kindrole"
)

// shippedRoles are the rights in the cluster, and those to the key.
func shippedRoles(t *testing.T) (rbacv1.ClusterRole, rbacv1.Role) {
	t.Helper()
	ofKey, _, _ := strings.Cut(readFile(t, "../../config/rbac/contentkey.yaml"), "\n---\n")
	cluster, own := rbacv1.ClusterRole{}, rbacv1.Role{}
	err := errors.Join(yaml.UnmarshalStrict([]byte(readFile(t, "../../config/rbac/role.yaml")), &cluster), yaml.UnmarshalStrict([]byte(ofKey), &own))
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Kind != "ClusterRole" || own.Kind != "Role" {
		t.Fatalf("the roles are a %s and a %s", cluster.Kind, own.Kind)
	}
	return cluster, own
}

// In the cluster the operator makes the Secret with the password of a Backup, and notes the ID of the repository in it. None is
// ever deleted. In its own namespace it makes its key, and never changes it.
func TestTheRolesLetTheOperatorMakeKeysAndDeleteNone(t *testing.T) {
	cluster, own := shippedRoles(t)
	for _, rule := range cluster.Rules {
		if slices.Contains(rule.Resources, "secrets") && !slices.Equal(rule.Verbs, []string{"create", "get", "list", "patch", "watch"}) {
			t.Errorf("in the cluster: %v of %v", rule.Verbs, rule.Resources)
		}
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{contentkey.SecretName}},
	}
	if diff := cmp.Diff(want, own.Rules); diff != "" || own.Namespace != DefaultNamespace {
		t.Errorf("in namespace %q: -want +got:\n%s", own.Namespace, diff)
	}
}

// The role is generated from markers, where a verb too many is easily overlooked.
func TestTheRoleLetsTheOperatorDeleteNeitherWhatServesNorWhatHoldsData(t *testing.T) {
	role, _ := shippedRoles(t)
	// What exposes an APIGateway is replaced when spec.expose says so: the gateway serves on. A BackupRun is history, and its
	// copy stays in the repository. A Job is deleted once its result is known. A snapshot of a volume, and the claim of the volume
	// that is made from it to be read once, go with the attempt that made them: no other claim is ever deleted, which the tests of
	// BackupRuns hold.
	deletable := []string{
		"controllerrevisions", "horizontalpodautoscalers", "poddisruptionbudgets", "ingresses", "httproutes", "backupruns", "jobs",
		"volumesnapshots", "persistentvolumeclaims",
	}
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

// Whoever may escalate or bind a role gives himself any right. The operator may escalate the one that tells what the monitor
// reads, and an admission policy bounds what is in that.
func TestTheRoleLetsTheOperatorEscalateOneClusterRole(t *testing.T) {
	role, _ := shippedRoles(t)
	for _, rule := range role.Rules {
		for _, verb := range []string{"escalate", "bind", "impersonate"} {
			if slices.Contains(rule.Verbs, verb) && (verb != "escalate" || !slices.Equal(rule.ResourceNames, []string{kindrole.Name})) {
				t.Errorf("the operator may %s %v %v", verb, rule.Resources, rule.ResourceNames)
			}
		}
		if slices.Contains(rule.Resources, "clusterroles") && !slices.Equal(rule.ResourceNames, []string{kindrole.Name}) {
			t.Errorf("the operator may %v ClusterRoles", rule.Verbs)
		}
		// Of one it keeps the subjects: who they get the rights of, it cannot change.
		if slices.Contains(rule.Resources, "clusterrolebindings") &&
			(!slices.Equal(rule.ResourceNames, []string{desired.RightsName}) || !slices.Equal(rule.Verbs, []string{"get", "list", "patch", "watch"})) {
			t.Errorf("the operator may %v ClusterRoleBindings %v", rule.Verbs, rule.ResourceNames)
		}
	}
	manifest := readFile(t, "../../config/monitor/kinds.yaml")
	if !strings.Contains(manifest, "kind: ValidatingAdmissionPolicyBinding") || !strings.Contains(manifest, "validationActions: [Deny]") {
		t.Error("no policy bounds the ClusterRole")
	}
}

// Whoever binds a role must have its rights himself. The operator has those of the pods of Gateways, and the role has no others.
func TestTheOperatorHasTheRightsThatItGivesToGateways(t *testing.T) {
	role, _ := shippedRoles(t)
	text, binding, _ := strings.Cut(readFile(t, "../../config/rbac/gateway.yaml"), "\n---\n")
	pods, bound := rbacv1.ClusterRole{}, rbacv1.ClusterRoleBinding{}
	if err := errors.Join(yaml.UnmarshalStrict([]byte(text), &pods), yaml.UnmarshalStrict([]byte(binding), &bound)); err != nil {
		t.Fatal(err)
	}
	if pods.Name != desired.RightsName || bound.Name != desired.RightsName || bound.RoleRef.Name != desired.RightsName || len(bound.Subjects) > 0 {
		t.Errorf("the binding is %+v, of the role %q", bound, pods.Name)
	}
	has := func(group, resource, verb string) bool {
		return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return len(rule.ResourceNames) == 0 && slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb)
		})
	}
	for _, rule := range pods.Rules {
		if !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) || slices.Contains(rule.Resources, "secrets") {
			t.Errorf("the pods may %v %v", rule.Verbs, rule.Resources)
		}
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if !has(rule.APIGroups[0], resource, verb) {
					t.Errorf("the pods may %s %s, and the operator may not", verb, resource)
				}
			}
		}
	}
}
