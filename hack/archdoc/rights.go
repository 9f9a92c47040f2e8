package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// ofPeople are the roles of people, which are made from what the kinds say (hack/people).
var ofPeople = []string{"slipway-view", "slipway-edit", "slipway-admin"}

// order is that of verbs. Others come after these.
var order = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// role is what a role lets its subjects do: verbs by resource. One object is "secrets called slipway-content-key".
type role struct {
	kind   string
	rights map[string][]string
}

// readRoles reads the roles of all programs, by name. One without a rule is filled in by somebody else.
func readRoles(root string) (map[string]role, error) {
	own, err := filepath.Glob(filepath.Join(root, "config/rbac/*.yaml"))
	if err != nil {
		return nil, err
	}
	roles := map[string]role{}
	for _, file := range append(own, filepath.Join(root, "config/monitor/rbac.yaml")) {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			object := rbacv1.ClusterRole{}
			if !strings.Contains(document, "\nrules:") {
				continue
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if len(object.Rules) > 0 && !slices.Contains(ofPeople, object.Name) {
				roles[object.Name] = role{object.Kind, rightsOf(object.Rules)}
			}
		}
	}
	hooks, err := hookRules(filepath.Join(root, "config/backup-hooks/kustomization.yaml"))
	roles["slipway-backup-hooks"] = role{"ClusterRole", rightsOf(hooks)}
	return roles, err
}

// hookRules are what the component for hooks fills a role with.
func hookRules(file string) ([]rbacv1.PolicyRule, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	component := struct{ Patches []struct{ Patch string } }{}
	if err := yaml.Unmarshal(content, &component); err != nil {
		return nil, err
	}
	steps := []struct{ Value []rbacv1.PolicyRule }{}
	if err := yaml.Unmarshal([]byte(component.Patches[0].Patch), &steps); err != nil {
		return nil, err
	}
	return steps[0].Value, nil
}

func rightsOf(rules []rbacv1.PolicyRule) map[string][]string {
	rights := map[string][]string{}
	for _, rule := range rules {
		for _, resource := range resourcesOf(rule) {
			rights[resource] = append(rights[resource], rule.Verbs...)
		}
	}
	for resource, verbs := range rights {
		slices.SortFunc(verbs, func(a, b string) int { return place(a) - place(b) })
		rights[resource] = slices.Compact(verbs)
	}
	return rights
}

// resourcesOf are the resources of a rule, as the page has them.
func resourcesOf(rule rbacv1.PolicyRule) []string {
	resources := slices.Clone(rule.NonResourceURLs)
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			base, sub, _ := strings.Cut(resource, "/")
			resource = strings.TrimSuffix(base+"."+group, ".") + strings.TrimSuffix("/"+sub, "/")
			if len(rule.ResourceNames) == 0 {
				resources = append(resources, resource)
			}
			for _, name := range rule.ResourceNames {
				resources = append(resources, resource+" called "+name)
			}
		}
	}
	return resources
}

func place(verb string) int {
	if i := slices.Index(order, verb); i >= 0 {
		return i
	}
	return len(order)
}

// rightsTables makes the tables that the text of reasons names.
func rightsTables(text string, roles map[string]role) (map[string]string, error) {
	tables, told := map[string]string{}, 0
	for section := range strings.SplitSeq(text, "\ntable ") {
		name, section, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(name, "#") {
			continue
		}
		header, rows := []string{"role", "resource", "verbs", "why"}, [][]string{}
		byRole := strings.Split("\n"+section, "\nrole ")[1:]
		for _, part := range byRole {
			of, part, _ := strings.Cut(part, "\n")
			reasons, err := lines(part)
			if err != nil {
				return nil, err
			}
			made, err := rowsOf(reasons, roles[of].rights)
			if err != nil {
				return nil, fmt.Errorf("role %s: %w", of, err)
			}
			for _, row := range made {
				rows = append(rows, append([]string{title(of, roles[of])}, row...))
			}
			told++
		}
		if len(byRole) == 1 { // what stands before the table names the role
			header = header[1:]
			for i := range rows {
				rows[i] = rows[i][1:]
			}
		}
		tables[name] = table(header, rows)
	}
	if told != len(roles) {
		return nil, fmt.Errorf("it has %d roles, and there are %q", told, slices.Sorted(maps.Keys(roles)))
	}
	return tables, nil
}

func title(name string, of role) string {
	if of.kind == "Role" {
		return "Role `" + name + "`, in its own namespace"
	}
	return of.kind + " `" + name + "`"
}

// resourcesByReason finds the line of each right. One that names the resource goes before one with a pattern.
func resourcesByReason(reasons []line, rights map[string][]string) ([][]string, error) {
	found, left := make([][]string, len(reasons)), maps.Clone(rights)
	take := func(matches func(pattern, resource string) bool) {
		for i, l := range reasons {
			for _, pattern := range l.about {
				for _, resource := range slices.Sorted(maps.Keys(left)) {
					if matches(pattern, resource) {
						found[i] = append(found[i], resource)
						delete(left, resource)
					}
				}
			}
		}
	}
	take(func(pattern, resource string) bool { return pattern == resource })
	take(func(pattern, resource string) bool {
		ok, err := path.Match(pattern, resource)
		return ok && err == nil
	})
	for _, resource := range slices.Sorted(maps.Keys(left)) {
		return nil, fmt.Errorf("no line says why it may %s %s", strings.Join(rights[resource], ", "), resource)
	}
	return found, nil
}

// rowsOf makes the rows of a role.
func rowsOf(reasons []line, rights map[string][]string) ([][]string, error) {
	found, err := resourcesByReason(reasons, rights)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for i, l := range reasons {
		if len(found[i]) == 0 {
			return nil, fmt.Errorf("it has no right to %s", strings.Join(l.about, ", "))
		}
		var verbs []string // in the order of the resources
		same := map[string][]string{}
		for _, resource := range found[i] {
			to := strings.Join(rights[resource], ", ")
			if same[to] == nil {
				verbs = append(verbs, to)
			}
			same[to] = append(same[to], "`"+strings.Replace(resource, " called ", "` called `", 1)+"`")
		}
		for _, to := range verbs {
			rows = append(rows, []string{strings.Join(same[to], ", "), to, l.why})
		}
	}
	return rows, nil
}
