package controller_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// named is what testdata/references says of a kind: each text of its spec is in one of the lists.
type named struct {
	// References name something. The value is the folder and the name of the test that says that a missing target is told, and
	// counts in Ready; and, behind the name, words of its row.
	References map[string]string `json:"references"`
	// Values name nothing, by the reason.
	Values map[string][]string `json:"values"`
}

// Everything that a spec names is resolved when it is said. So whoever adds a field to a kind says whether it names something,
// and with which test it is told that this is missing.
func TestEveryTextOfASpecIsAReferenceThatIsResolvedOrNone(t *testing.T) {
	definitions, err := filepath.Glob(filepath.Join(root, "config", "crd", "slipway.dev_*.yaml"))
	if err != nil || len(definitions) < 8 {
		t.Fatal(definitions, err)
	}
	for _, path := range definitions {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		readYAML(t, path, definition)
		kind := definition.Spec.Names.Kind
		t.Run(kind, func(t *testing.T) {
			listed := &named{}
			readYAML(t, filepath.Join("testdata", "references", kind+".yaml"), listed)
			times := map[string]int{}
			for field, test := range listed.References {
				times[field]++
				hasTest(t, field, test)
			}
			for why, fields := range listed.Values {
				if why == "" {
					t.Errorf("no reason is given why %q name nothing", fields)
				}
				for _, field := range fields {
					times[field]++
				}
			}
			for _, version := range definition.Spec.Versions {
				spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
				for _, field := range texts("spec", &spec) {
					if times[field] != 1 {
						t.Errorf("%s is %d times in testdata/references/%s.yaml, want once: does it name something?", field, times[field], kind)
					}
					delete(times, field)
				}
			}
			for field := range times {
				t.Errorf("testdata/references/%s.yaml has %s, which is no text of the spec", kind, field)
			}
		})
	}
}

// texts are the paths of the texts of a schema. One of a few words names nothing.
func texts(path string, schema *apiextensionsv1.JSONSchemaProps) []string {
	if (schema.Type == "string" || schema.XIntOrString) && len(schema.Enum) == 0 {
		return []string{path}
	}
	var paths []string
	for name := range schema.Properties {
		property := schema.Properties[name]
		paths = append(paths, texts(path+"."+name, &property)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		paths = append(paths, texts(path+"[]", schema.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		paths = append(paths, texts(path+"{}", schema.AdditionalProperties.Schema)...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// hasTest looks for a test in a folder, and for the words of its row.
func hasTest(t *testing.T, field, test string) {
	t.Helper()
	folder, rest, _ := strings.Cut(test, " ")
	name, row, _ := strings.Cut(rest, " ")
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil || name == "" {
		t.Errorf("%s: %q is no folder and test, %v", field, test, err)
		return
	}
	begins := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if begins.Match(raw) {
			if !strings.Contains(string(raw), row) {
				t.Errorf("%s: %s has no row %q in %s", field, name, row, file)
			}
			return
		}
	}
	t.Errorf("%s: there is no test %s in %s", field, name, folder)
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(raw, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
