package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/keep"
	"github.com/slipway-dev/slipway/internal/operator"
)

func TestThePageIsUpToDate(t *testing.T) {
	want, err := render()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run make generate; -made +page\n%s", diff)
	}
}

// wantError checks an error against a part of its text, empty: none.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

func TestRights(t *testing.T) {
	roles := map[string]role{
		"keeper": {"ClusterRole", rightsOf([]rbacv1.PolicyRule{
			{APIGroups: []string{"zoo.dev"}, Resources: []string{"apes", "bears", "cats", "apes/status", "cats/status"}, Verbs: []string{"list", "get"}},
			{APIGroups: []string{"zoo.dev"}, Resources: []string{"cats"}, Verbs: []string{"escalate", "create", "get"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"key"}, Verbs: []string{"get"}},
		})},
		"visitor": {"Role", rightsOf([]rbacv1.PolicyRule{{NonResourceURLs: []string{"/gate"}, Verbs: []string{"get"}}})},
	}
	const visitor = "role visitor\n/gate: to come in\n"
	const secret = "secrets called key: to open\n"
	row := func(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	tests := map[string]struct{ text, want, wrong string }{
		"a line for all": {
			text: "table t\nrole keeper\n*.zoo.dev: to feed\n*/status: to look\n" + secret + visitor,
			want: row("role", "resource", "verbs", "why") + "|---|---|---|---|\n" +
				row("ClusterRole `keeper`", "`apes.zoo.dev`, `bears.zoo.dev`", "get, list", "to feed") +
				row("ClusterRole `keeper`", "`cats.zoo.dev`", "get, list, create, escalate", "to feed") +
				row("ClusterRole `keeper`", "`apes.zoo.dev/status`, `cats.zoo.dev/status`", "get, list", "to look") +
				row("ClusterRole `keeper`", "`secrets` called `key`", "get", "to open") +
				row("Role `visitor`, in its own namespace", "`/gate`", "get", "to come in"),
		},
		"a name before a pattern": {
			text: "table t\nrole keeper\n*.zoo.dev, */status: to feed\ncats.zoo.dev: to be bitten\n" + secret + "table u\n" + visitor,
			want: row("resource", "verbs", "why") + "|---|---|---|\n" +
				row("`apes.zoo.dev`, `bears.zoo.dev`, `apes.zoo.dev/status`, `cats.zoo.dev/status`", "get, list", "to feed") +
				row("`cats.zoo.dev`", "get, list, create, escalate", "to be bitten") +
				row("`secrets` called `key`", "get", "to open"),
		},
		"a right without a reason": {text: "table t\nrole keeper\n*.zoo.dev: to feed\n" + secret + visitor, wrong: "role keeper: no line says why it may get, list apes.zoo.dev/status"},
		"a reason without a right": {text: "table t\nrole visitor\n/gate: to come in\n/exit: to go\n", wrong: "role visitor: it has no right to /exit"},
		"a role without a line":    {text: "table t\n" + visitor, wrong: `it has 1 roles, and there are ["keeper" "visitor"]`},
		"no reason":                {text: "table t\nrole visitor\n/gate\n", wrong: "the line says no reason: /gate"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := rightsTables("# a comment\n\n"+tc.text, roles)
			wantError(t, err, tc.wrong)
			if diff := cmp.Diff(tc.want, got["t"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCaches(t *testing.T) {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	everywhere := map[client.Object]cache.ByObject{
		&slipwayv1alpha1.WebApp{}: {Transform: cache.TransformStripManagedFields()},
		&slipwayv1alpha1.Backup{}: {Transform: cache.TransformStripManagedFields(), Label: keep.Ours()},
		&rbacv1.ClusterRole{}:     {Transform: keep.Metadata(), Field: fields.OneTermEqualSelector("metadata.name", "one")},
	}
	limited := map[client.Object]cache.ByObject{
		metadata:                  {Transform: keep.Identity},
		&slipwayv1alpha1.WebApp{}: {Transform: cache.TransformStripManagedFields()},
		&slipwayv1alpha1.Backup{}: {Transform: cache.TransformStripManagedFields(), Label: keep.Ours()},
	}
	caches := []operator.Cached{{Name: "c", Whole: everywhere, Limited: limited}}
	const words = "TransformStripManagedFields: much\nMetadata: little\n"
	tests := map[string]struct{ text, want, wrong string }{
		"all": {
			text: words + "Identity: a name\n\ncache c: all of them\nWebApp, Backup: ours\nClusterRole, Secret: others'\n",
			want: "| kind | which | what is kept | why |\n|---|---|---|---|\n" +
				"| WebApp | all of them | much | ours |\n" +
				"| Backup | with the label `app.kubernetes.io/managed-by=slipway` | much | ours |\n" +
				"| ClusterRole | called `one`; not where the operator is limited to some namespaces | little | others' |\n" +
				"| Secret | all of them; only where the operator is limited to some namespaces | a name | others' |\n",
		},
		"a kind without a reason":   {text: words + "Identity: a name\n\ncache c: all\nWebApp, Backup, Secret: ours\n", wrong: `cache c: no line says why it has ["ClusterRole"]`},
		"a reason without a kind":   {text: words + "Identity: a name\n\ncache c: all\nWebApp, Pod: ours\n", wrong: "cache c: it has no Pod"},
		"a function without a word": {text: words + "\ncache c: all\nWebApp: ours\n", wrong: "no line says what Identity keeps, of Secret"},
		"another cache":             {text: words + "\ncache d: all\nWebApp: ours\n", wrong: `there is no cache "d"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := cachesTable(tc.text, caches)
			wantError(t, err, tc.wrong)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAPageWithoutMarkersIsRefused(t *testing.T) {
	_, err := between("# Page\n", map[string]string{"t": "| a |\n"})
	wantError(t, err, "the page has no lines <!-- begin: t")
}
