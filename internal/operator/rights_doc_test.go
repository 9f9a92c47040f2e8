package operator

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// A cell of resources in docs/architecture.md: names in backquotes, and perhaps the name of the one object that the right is to.
var (
	quoted = regexp.MustCompile("`([^`]+)`")
	called = regexp.MustCompile(" called `([^`]+)`")
)

// stated are the rights in one line of a table: resource, name and verb.
func stated(resources, verbs string) []string {
	only := ""
	if match := called.FindStringSubmatch(resources); match != nil {
		only, resources = match[1], strings.Replace(resources, match[0], "", 1)
	}
	var all []string
	for _, match := range quoted.FindAllStringSubmatch(resources, -1) {
		for verb := range strings.SplitSeq(verbs, ",") {
			all = append(all, strings.TrimSpace(verb)+" "+match[1]+" "+only)
		}
	}
	return all
}

// given are the rights of rules, written in the same way.
func given(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		resources := slices.Clone(rule.NonResourceURLs)
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				base, sub, is := strings.Cut(resource, "/")
				if group != "" {
					base += "." + group
				}
				if is {
					base += "/" + sub
				}
				resources = append(resources, base)
			}
		}
		for _, verb := range rule.Verbs {
			for _, resource := range resources {
				for _, name := range names {
					all = append(all, verb+" "+resource+" "+name)
				}
			}
		}
	}
	return all
}

// documented reads the rights in docs/architecture.md, by the name of the role. Tables with three columns are of slipway-operator.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	_, text, _ := strings.Cut(readFile(t, "../../docs/architecture.md"), "**The rights.**")
	text, _, _ = strings.Cut(text, "The monitor also has")
	roles := map[string][]string{}
	for line := range strings.SplitSeq(text, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || slices.Contains(cells, "verbs") {
			continue
		}
		role := "slipway-operator"
		if len(cells) == 4 {
			role, cells = quoted.FindStringSubmatch(cells[0])[1], cells[1:]
		}
		if len(cells) != 3 || cells[2] == "" {
			t.Fatalf("the line says not what, how and why: %s", line)
		}
		roles[role] = append(roles[role], stated(cells[0], cells[1])...)
	}
	return roles
}

// shippedRights are the rights of all roles in config but those for users, by the name of the role. The component for hooks fills in a role
// that is empty.
func shippedRights(t *testing.T) map[string][]string {
	t.Helper()
	roles := map[string][]string{}
	for document := range strings.SplitSeq(readFile(t, "../../dist/install.yaml"), "\n---\n") {
		role := rbacv1.ClusterRole{}
		if !strings.Contains(document, "kind: ClusterRole\n") && !strings.Contains(document, "kind: Role\n") {
			continue
		}
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		users := slices.Contains([]string{"slipway-view", "slipway-edit", "slipway-admin"}, role.Name)
		if strings.HasSuffix(role.Kind, "Role") && !users && len(role.Rules) > 0 {
			roles[role.Name] = append(roles[role.Name], given(role.Rules)...)
		}
	}
	component := struct{ Patches []struct{ Patch string } }{}
	if err := yaml.Unmarshal([]byte(readFile(t, "../../config/backup-hooks/kustomization.yaml")), &component); err != nil {
		t.Fatal(err)
	}
	steps := []struct{ Value []rbacv1.PolicyRule }{}
	if err := yaml.Unmarshal([]byte(component.Patches[0].Patch), &steps); err != nil {
		t.Fatal(err)
	}
	roles["slipway-backup-hooks"] = given(steps[0].Value)
	return roles
}

// TestTheDocumentationTellsEveryRight compares the tables of docs/architecture.md with the roles: none is left out, and none is made up.
func TestTheDocumentationTellsEveryRight(t *testing.T) {
	want, got := shippedRights(t), documented(t)
	if len(want["slipway-operator"]) < 100 {
		t.Fatalf("the operator has %d rights, which cannot be", len(want["slipway-operator"]))
	}
	for _, role := range slices.Sorted(maps.Keys(want)) {
		unique := func(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }
		if diff := cmp.Diff(unique(want[role]), unique(got[role])); diff != "" {
			t.Errorf("docs/architecture.md about %s: -role +page\n%s", role, diff)
		}
		delete(got, role)
	}
	for role := range got {
		t.Errorf("docs/architecture.md tells of a role %s that there is not", role)
	}
}
