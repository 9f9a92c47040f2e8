package kindrole

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/slipway-dev/slipway/internal/monitor/selection"
)

// Whatever definitions and APIServices there are: nothing but reading, nothing of the core group, no wildcard, nothing of a group
// that somebody else serves, and every kind is in one rule, or counted as left out. The order does not matter.
func FuzzRules(f *testing.F) {
	f.Add("widgets.example.com secrets.example.com", "v1. v1.apps", "v1.example.com", "")
	f.Add("secrets a.b.c *.example.com x/y.example.com", "v1.b.c", "v2.b.c", "example.com")
	f.Add(". .. a. .b *.*", ". v1 v1.*", "", "*")
	f.Fuzz(func(t *testing.T, defined, others, own, exclude string) {
		definitions := strings.Fields(defined)
		slices.Sort(definitions)
		definitions = slices.Compact(definitions)
		var services []apiService
		for _, name := range strings.Fields(others) {
			services = append(services, apiService{name: name})
		}
		for _, name := range strings.Fields(own) {
			services = append(services, apiService{name: name, ofDefinitions: true})
		}
		chosen, err := selection.New(nil, strings.Fields(exclude))
		if err != nil {
			t.Skip("no patterns")
		}
		got, count := rules(definitions, services, chosen)
		granted := 0
		for _, rule := range got {
			if !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) || len(rule.APIGroups) != 1 || len(rule.NonResourceURLs) > 0 {
				t.Errorf("the rule %+v", rule)
			}
			group := rule.APIGroups[0]
			if !strings.Contains(group, ".") || strings.Contains(group, "*") {
				t.Errorf("a rule for the group %q", group)
			}
			for _, service := range strings.Fields(others) {
				if _, served, _ := strings.Cut(service, "."); served == group {
					t.Errorf("a rule for the group %q, which %q serves", group, service)
				}
			}
			for _, resource := range rule.Resources {
				granted++
				if !slices.Contains(definitions, resource+"."+group) || strings.ContainsAny(resource, "*/") {
					t.Errorf("a right to %q of %q, which no definition has", resource, group)
				}
			}
		}
		if granted != count.granted || count.granted+count.excluded+count.foreign != len(definitions) {
			t.Errorf("%d of %d are granted: %+v", granted, len(definitions), count)
		}
		slices.Reverse(definitions)
		slices.Reverse(services)
		again, _ := rules(definitions, services, chosen)
		if !slices.EqualFunc(got, again, func(a, b rbacv1.PolicyRule) bool {
			return slices.Equal(a.Resources, b.Resources) && a.APIGroups[0] == b.APIGroups[0]
		}) {
			t.Errorf("the order matters: %v, %v", got, again)
		}
	})
}
