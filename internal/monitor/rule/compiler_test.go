package rule

import (
	"strings"
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

func TestCompileRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		spec spec
		want string
	}{
		"nothing":               {spec{}, "spec: set at least one of"},
		"no CEL":                {spec{When: "object.x ==\n  )"}, "spec.when, line 2, column 3: "},
		"an unknown variable":   {spec{When: "objekt.x == 1"}, "spec.when, line 1, column 1: undeclared reference to 'objekt'"},
		"a number":              {spec{When: "1 + 1"}, "spec.when: yields int, and it must yield bool"},
		"a message of a number": {spec{When: "true", Message: "size(changes)"}, "spec.message: yields int, and it must yield string"},
		"too many loops":        {spec{When: "object.a.all(a, object.b.all(b, object.c.all(c, object.d.all(d, object.e.all(e, e == a)))))"}, "spec.when: costs too much"},
		"a bad pattern":         {spec{When: "'a'.matches('[')"}, "spec.when, line 1"},
		"a long expression":     {spec{When: strings.Repeat("true || ", 600) + "true"}, "spec.when: has more than 4096 bytes"},
		"a bad time":            {spec{When: "true", For: "25h"}, `spec.for: "25h" is not a time`},
		"two in one": {spec{
			Changes: &slipwayv1alpha1.MonitorChanges{Count: 2, Within: "1m"}, StuckDeletion: &slipwayv1alpha1.MonitorStuckDeletion{},
		}, "spec: set at most one of"},
		"a count": {spec{Changes: &slipwayv1alpha1.MonitorChanges{Count: 1, Within: "1m"}}, "spec.changes.count: 1 is not"},
	} {
		t.Run(name, func(t *testing.T) {
			r, problems := compiler(t).Compile(monitorRule(test.spec))
			if r != nil || len(problems) == 0 || !strings.Contains(Sentence(problems), test.want) {
				t.Errorf("rule %v, problems %q, want %q", r, Sentence(problems), test.want)
			}
		})
	}
}

func TestCompileTakesWhatKubernetesHas(t *testing.T) {
	for _, text := range []string{
		"object.spec.list.exists(c, c.name.startsWith('a'))",
		"quantity(object.spec.memory).isGreaterThan(quantity('1Gi'))",
		"ip(object.spec.ip).family() == 4 && cidr('10.0.0.0/8').containsIP(object.spec.ip)",
		"url(object.spec.url).getScheme() == 'https'",
		"object.spec.name.find('[0-9]+') != ''",
		"semver(object.spec.v).isLessThan(semver('1.2.3'))",
		"oldObject != null && oldObject.spec != object.spec",
		"now - timestamp(object.metadata.creationTimestamp) > duration('1h')",
		"object.spec.enabled",
		"health.state == 'Failed' && changes.size() > 2 && changes[0].old == null",
		"object.?status.?phase.orValue('') == 'Bad'",
	} {
		if _, problems := compiler(t).Compile(monitorRule(spec{When: text, Message: "'a ' + string(object.metadata.name)"})); len(problems) > 0 {
			t.Errorf("%s: %s", text, Sentence(problems))
		}
	}
}

func TestAMessageMayTellWhatChanged(t *testing.T) {
	for _, text := range []string{
		"'from ' + string(changes[0].old) + ' to ' + string(changes[0].new)",
		"changes[0].path + ' is ' + changes[0].new",
		"'image ' + changes.filter(c, c.path == '.spec.image')[0].new",
		"changes.map(c, c.path).join(', ')",
		"object.metadata.name + ': ' + health.message",
	} {
		if _, problems := compiler(t).Compile(monitorRule(spec{When: "true", Message: text})); len(problems) > 0 {
			t.Errorf("%s: %s", text, Sentence(problems))
		}
	}
}

func TestKindsAndNamespaces(t *testing.T) {
	r := compile(t, spec{
		When: "true", Kinds: []slipwayv1alpha1.MonitoredKind{{Group: "*.example.com", Kind: "Wid*"}, {Kind: "Pod"}},
		Namespaces: []string{"team-*", "x"}, ExcludeNamespaces: []string{"*-test"},
	})
	for group, kinds := range map[string]map[string]bool{"a.example.com": {"Widget": true, "Gadget": false}, "": {"Pod": true, "Widget": false}} {
		for kind, want := range kinds {
			if got := len(NewSet([]*Rule{r}).For(group, kind)) == 1; got != want {
				t.Errorf("about %s of %q: %v", kind, group, got)
			}
		}
	}
	for namespace, want := range map[string]bool{"team-a": true, "team-a-test": false, "x": true, "xx": false, "": false} {
		if got := r.inNamespace(namespace); got != want {
			t.Errorf("in namespace %q: %v", namespace, got)
		}
	}
}
