package crdcheck

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// large returns a definition with 5,000 properties: 50 groups of 100, as bounded strings, integers and enums.
func large(longest int64) *apiextensionsv1.CustomResourceDefinition {
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for g := range 50 {
		group := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for p := range 100 {
			property := apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: ptr.To(longest), Description: "what it is"}
			switch p % 4 {
			case 1:
				property = apiextensionsv1.JSONSchemaProps{Type: "integer", Maximum: ptr.To(float64(longest))}
			case 2:
				property.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}}
			}
			group.Properties[fmt.Sprintf("property%d", p)] = property
		}
		group.XValidations = []apiextensionsv1.ValidationRule{{Rule: "!has(self.property0) || self.property0 != 'forbidden'"}}
		spec.Properties[fmt.Sprintf("group%d", g)] = group
	}
	return definition(&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}})
}

// instance of the large definition: some properties of every fifth group, about 2 KB. size is the value of its integers.
func largeInstance(size int64) map[string]any {
	spec := map[string]any{}
	for g := 0; g < 50; g += 5 {
		group := map[string]any{}
		for p := range 8 {
			name := fmt.Sprintf("property%d", p)
			switch p % 4 {
			case 1:
				group[name] = size
			case 2:
				group[name] = "a"
			default:
				group[name] = "some text of it"
			}
		}
		spec[fmt.Sprintf("group%d", g)] = group
	}
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "default"}, "spec": spec,
	}
}

func BenchmarkCompare5000Properties(b *testing.B) {
	before, after := large(30), large(29)
	b.ReportAllocs()
	for b.Loop() {
		if found := Compare(before, after); len(found) != 5000 {
			b.Fatalf("%d findings", len(found))
		}
	}
}

func BenchmarkNewChecker5000Properties(b *testing.B) {
	crd := large(30)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewChecker(crd, "v1"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	c := checker(b, large(30))
	for name, object := range map[string]map[string]any{"fine": largeInstance(1), "breaking": largeInstance(31)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := c.Check(b.Context(), object); (v.State == Fine) != (name == "fine") {
					b.Fatalf("%+v", v)
				}
			}
		})
	}
}
