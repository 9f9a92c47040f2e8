package kindrole

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/selection"
)

// verbs are what the monitor does with a kind.
var verbs = []string{"get", "list", "watch"}

// apiService is what is kept of an APIService: one version of a group, and who serves it.
type apiService struct {
	// name is VERSION.GROUP; that of the core group ends with the dot.
	name string
	// ofDefinitions reports whether CustomResourceDefinitions make it. Otherwise it is built in, or another server has it.
	ofDefinitions bool
}

// found says what becomes of the kinds that have a definition. Their number is the sum.
type found struct {
	// granted are in a rule, excluded are left out by a pattern, and foreign because somebody else serves their group.
	granted, excluded, foreign int
}

// rules returns a rule for each group that has definitions, sorted. definitions are their names, RESOURCE.GROUP.
//
// RBAC knows groups and resources, and not who serves them. A definition may have the name of a resource that is built in, or
// that another server has. A rule for the one would be a right to read the other. So a group that anybody but definitions
// serves gets no rule at all. The core group, which holds Secrets, has no dot and cannot be that of a definition.
func rules(definitions []string, services []apiService, chosen selection.Kinds) ([]rbacv1.PolicyRule, found) {
	foreign := map[string]bool{"": true}
	for _, service := range services {
		if _, group, ok := strings.Cut(service.name, "."); ok && !service.ofDefinitions {
			foreign[group] = true
		}
	}
	var count found
	resources := map[string][]string{}
	for _, name := range definitions {
		kind := schema.ParseGroupResource(name)
		switch {
		case !plain(kind):
			count.foreign++
		case chosen.Refuses(kind) != "":
			count.excluded++
		case foreign[kind.Group]:
			count.foreign++
		default:
			count.granted++
			resources[kind.Group] = append(resources[kind.Group], kind.Resource)
		}
	}
	wanted := make([]rbacv1.PolicyRule, 0, len(resources))
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		slices.Sort(resources[group])
		wanted = append(wanted, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources[group], Verbs: verbs})
	}
	return wanted, count
}

// plain reports whether a name is one that a definition can have: a group with a dot, and no character that a rule takes for more
// than itself. The API server lets no other one in.
func plain(kind schema.GroupResource) bool {
	return kind.Resource != "" && strings.Contains(kind.Group, ".") && !strings.ContainsAny(kind.String(), "*/ ")
}
