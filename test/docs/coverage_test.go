package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestTheTutorialCoversWhatAViewerMayList compares the kinds in docs/tutorial-monitor.md with the rights that view gets.
func TestTheTutorialCoversWhatAViewerMayList(t *testing.T) {
	raw, err := os.ReadFile(root + "/config/rbac/users.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	for _, document := range strings.Split(string(raw), "\n---\n") {
		if err := yaml.Unmarshal([]byte(document), role); err != nil {
			t.Fatal(err)
		}
		if role.Name == "slipway-view" {
			break
		}
	}
	var want, got []string
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			if slices.Contains(rule.Verbs, "list") && !strings.Contains(resource, "/") {
				want = append(want, resource)
			}
		}
	}
	for _, match := range regexp.MustCompile(`(?m)^([a-z]+)\.slipway\.dev +v1alpha1 +Live`).FindAllStringSubmatch(pages(t)["docs/tutorial-monitor.md"], -1) {
		got = append(got, match[1])
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 5 {
		t.Errorf("kinds of view and of the tutorial (-want +got):\n%s", diff)
	}
}
