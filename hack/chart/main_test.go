package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestARevisionChangesWithTheFieldsAndNeverGoesBack(t *testing.T) {
	const known = "# header of three\na.dev 1 x\nb.dev 1 x\na.dev 2 y\n"
	tests := map[string]struct {
		known, crd, digest, want string
		revision                 int
		refused                  bool
	}{
		"the same fields":             {known: known, crd: "a.dev", digest: "y", want: known, revision: 2},
		"other fields":                {known: known, crd: "a.dev", digest: "z", want: known + "a.dev 3 z\n", revision: 3},
		"the fields of a while ago":   {known: known, crd: "a.dev", digest: "x", want: known + "a.dev 3 x\n", revision: 3},
		"another definition":          {known: known, crd: "b.dev", digest: "x", want: known, revision: 1},
		"a definition that is new":    {known: known, crd: "c.dev", digest: "x", want: known + "c.dev 1 x\n", revision: 1},
		"a file that somebody edited": {known: known + "a.dev 2 z\n", crd: "a.dev", digest: "z", refused: true},
		"a number that is none":       {known: "a.dev one x\n", crd: "a.dev", digest: "x", refused: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, revision, err := revise(tc.known, tc.crd, tc.digest)
			if (err != nil) != tc.refused {
				t.Fatalf("error %v, want one: %v", err, tc.refused)
			}
			if err == nil && (got != tc.want || revision != tc.revision) {
				t.Errorf("revision %d, want %d; the file is\n%s\nwant\n%s", revision, tc.revision, got, tc.want)
			}
		})
	}
}

func TestEveryFieldCounts(t *testing.T) {
	yes := true
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
		return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: object(map[string]apiextensionsv1.JSONSchemaProps{
				"list": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: object(map[string]apiextensionsv1.JSONSchemaProps{"a": text})}},
				"map":  {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: object(map[string]apiextensionsv1.JSONSchemaProps{"b": text})}},
				"free": {XPreserveUnknownFields: &yes},
			}),
		}}},
	}}
	want := []string{"v1.free", "v1.free.**", "v1.list", "v1.list[].a", "v1.map", "v1.map{}.b"}
	if diff := cmp.Diff(want, fields(crd)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestATemplateKeepsWhatHelmWouldTakeForItsOwn(t *testing.T) {
	got, err := template([]byte("---\nmetadata:\n  annotations:\n    by: x\n  name: a\nspec: say {{ this }}\n"), 7)
	if err != nil {
		t.Fatal(err)
	}
	want := generated + `{{- if .Values.crds.install }}
metadata:
  annotations:
    helm.sh/resource-policy: keep
    slipway.dev/schema-revision: "7"
    by: x
  name: a
spec: say {{ ` + "`{{`" + ` }} this {{ ` + "`}}`" + ` }}
{{- end }}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := template([]byte("metadata:\n  name: a\n"), 1); err == nil {
		t.Error("a definition without annotations is taken")
	}
}

// The chart has the objects that config has now, and no older ones.
func TestTheChartHasWhatConfigHas(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	role := func(name string) string {
		return "kind: ClusterRole\nmetadata: {name: " + name + "}\nrules: []\n"
	}
	put("config/crd/slipway.dev_things.yaml", "kind: CustomResourceDefinition\nmetadata:\n  annotations:\n    by: x\n  name: things.slipway.dev\nspec: {names: {plural: things}}\n")
	put("config/rbac/role.yaml", role("slipway-operator"))
	put("config/rbac/users.yaml", "# For people.\n"+role("slipway-view")+"---\n"+role("slipway-edit"))
	put("config/manager/namespace.yaml", "kind: Namespace\nmetadata: {name: slipway-system}\n")
	put("config/manager/kustomization.yaml", "kind: Kustomization\n")
	put("rules/webapp/role.yaml", "kind: ClusterRole\nrules:\n- {apiGroups: [''], resources: [pods], verbs: [get]}\n")
	put("chart/config/service-gone.yaml", "kind: Service\n")
	for _, channel := range []string{"standard", "experimental"} {
		put("gateway-api/"+channel+"/gateway.networking.k8s.io_gateways.yaml", upstream("v1.2.3", channel))
	}
	p := paths{
		config: filepath.Join(root, "config"), rules: filepath.Join(root, "rules"), gatewayAPI: filepath.Join(root, "gateway-api"),
		chart: filepath.Join(root, "chart"), revisions: filepath.Join(root, "revisions.txt"),
	}
	if err := run(p); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, folder := range []string{"config", "templates/crds"} {
		entries, err := os.ReadDir(filepath.Join(root, "chart", folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
	}
	if diff := cmp.Diff([]string{"clusterrole-slipway-edit.yaml", "clusterrole-slipway-view.yaml", "rules-webapp.yaml", "schema-revisions.yaml", "things.yaml"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	put("config/rbac/more.yaml", role("slipway-view"))
	if err := run(p); err == nil || !strings.Contains(err.Error(), "there are two") {
		t.Errorf("two objects of one name: %v", err)
	}
}
