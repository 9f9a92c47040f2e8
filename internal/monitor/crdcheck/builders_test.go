package crdcheck

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// schemaFrom reads a schema from YAML.
func schemaFrom(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(text), schema); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return schema
}

// specSchema is the schema of an object whose spec is as the YAML says.
func specSchema(t testing.TB, spec string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	return &apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec":   *schemaFrom(t, spec),
			"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"phase": {Type: "string"}}},
		},
	}
}

// definition returns a definition of widgets with one version.
func definition(schema *apiextensionsv1.JSONSchemaProps, change ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", Plural: "widgets", ShortNames: []string{"wi"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
			}},
		},
	}
	for _, c := range change {
		c(crd)
	}
	return crd
}

func withStatus(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
}

// widget reads an object from the YAML of its spec.
func widget(t testing.TB, spec string) map[string]any {
	t.Helper()
	return objectFrom(t, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: default}\nspec:\n  "+
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")+"\n")
}

func objectFrom(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func checker(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) *Checker {
	t.Helper()
	c, err := NewChecker(crd, "v1")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
