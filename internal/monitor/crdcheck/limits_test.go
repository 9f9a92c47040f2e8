package crdcheck

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func deepSchema(levels int) *apiextensionsv1.JSONSchemaProps {
	s := &apiextensionsv1.JSONSchemaProps{Type: "string"}
	for range levels {
		s = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": *s}}
	}
	return s
}

func TestNewCheckerRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		schema *apiextensionsv1.JSONSchemaProps
		want   string
	}{
		"nothing":        {nil, "has no schema"},
		"no object":      {schemaFrom(t, "{type: array, items: {type: string}}"), "the type of the root has to be object"},
		"a reference":    {schemaFrom(t, "{type: object, properties: {a: {$ref: '#/x'}}}"), "not structural"},
		"no type":        {schemaFrom(t, "{type: object, properties: {a: {}}}"), "not structural"},
		"depth":          {deepSchema(maxSchemaDepth + 1), "levels deep"},
		"unique items":   {schemaFrom(t, "{type: object, properties: {a: {type: array, uniqueItems: true, items: {type: string}}}}"), "uniqueItems"},
		"long rules":     {schemaFrom(t, "{type: object, x-kubernetes-validations: [{rule: '"+strings.Repeat("x", maxRuleBytes+1)+"'}]}"), "longer than"},
		"no JSON":        {&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte("{")}}}}, "read the schema"},
		"array of items": {schemaFrom(t, "{type: object, properties: {a: {type: array, items: [{type: string}, {type: string}]}}}"), "not structural"},
	} {
		crd := definition(test.schema)
		if test.schema == nil {
			crd.Spec.Versions[0].Schema = nil
		}
		if _, err := NewChecker(crd, "v1"); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	if _, err := NewChecker(definition(specSchema(t, "{type: object}")), "v2"); err == nil || !strings.Contains(err.Error(), `no version "v2"`) {
		t.Errorf("another version: %v", err)
	}
}

func TestCompareDoesNotGoDeep(t *testing.T) {
	got := Compare(definition(deepSchema(3)), definition(deepSchema(9_000)))
	if len(got) != 1 || got[0].Code != TooLarge {
		t.Errorf("got %+v", got)
	}
}

// Objects that would keep a check busy are not checked, and it says so.
func TestCheckIsBounded(t *testing.T) {
	many := make([]string, 3000)
	for i := range many {
		many[i] = fmt.Sprintf("{maxLength: %d}", i+1)
	}
	alternatives := specSchema(t, "{type: object, properties: {l: {type: array, items: {type: string, anyOf: ["+strings.Join(many, ", ")+"]}}}}")
	list := make([]any, 5000)
	for i := range list {
		list[i] = "x"
	}
	deep := map[string]any{}
	for at, i := deep, 0; i < 2*maxSteps; i++ {
		next := map[string]any{}
		at["a"] = next
		at = next
	}
	kept := specSchema(t, "{type: object, x-kubernetes-preserve-unknown-fields: true}")
	defaults := specSchema(t, "{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: array, items: {type: integer}, default: ["+
		strings.Repeat("1, ", 10_000)+"1]}}}}}}")
	empty := make([]any, 5000)
	for i := range empty {
		empty[i] = map[string]any{}
	}
	for name, test := range map[string]struct {
		schema *apiextensionsv1.JSONSchemaProps
		spec   any
		want   string
	}{
		"alternatives times items": {alternatives, map[string]any{"l": list}, "comparisons"},
		"depth":                    {kept, deep, "levels deep"},
		"no JSON":                  {kept, map[string]any{"a": int32(3)}, "Go type int32"},
		"defaults times items":     {defaults, map[string]any{"l": empty}, "values"},
	} {
		object := widget(t, "{}")
		object["spec"] = test.spec
		start := time.Now()
		v := checker(t, definition(test.schema)).Check(t.Context(), object)
		if took := time.Since(start); v.State != Unknown || !strings.Contains(v.Incomplete, test.want) || took > 5*time.Second {
			t.Errorf("%s: %+v after %v, want %q", name, v, took, test.want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if v := checker(t, definition(kept)).Check(ended, widget(t, "{}")); v.State != Unknown || v.Incomplete == "" {
		t.Errorf("after its end: %+v", v)
	}
}

// A rule that this program cannot compile says nothing about objects.
func TestCheckOfRulesThatDoNotCompile(t *testing.T) {
	schema := specSchema(t, "{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: fromTheFuture(self)}]}")
	v := checker(t, definition(schema)).Check(t.Context(), widget(t, "{a: x}"))
	if v.State != Unknown || !strings.Contains(v.Incomplete, "fromTheFuture") {
		t.Errorf("%+v", v)
	}
}

func TestRefused(t *testing.T) {
	before := definition(specSchema(t, "{type: object, properties: {a: {type: string}}}"))
	for name, test := range map[string]struct {
		before, after *apiextensionsv1.CustomResourceDefinition
		want          []string
	}{
		"the same":  {before, before, nil},
		"a new one": {nil, before, nil},
		"another":   {before, definition(specSchema(t, "{type: object, required: [a], properties: {a: {type: integer}}}")), nil},
		"not structural": {
			before, definition(specSchema(t, "{type: object, properties: {a: {}}}")),
			[]string{"openAPIV3Schema.properties[spec].properties[a].type: Required value: must not be empty for specified object fields"},
		},
		"a rule that does not compile": {
			before, definition(specSchema(t, "{type: object, x-kubernetes-validations: [{rule: nothing(self)}]}")), []string{"undeclared reference to 'nothing'"},
		},
		"no storage version": {
			before, definition(specSchema(t, "{type: object}"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Storage = false }),
			[]string{"must have exactly one version marked as storage version"},
		},
	} {
		got := Refused(t.Context(), test.before, test.after)
		if len(test.want) == 0 && len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
		for _, want := range test.want {
			found := false
			for _, f := range got {
				found = found || f.Code == DefinitionRefused && f.Severity == Breaking && strings.Contains(f.Message, want)
			}
			if !found {
				t.Errorf("%s: got %+v, want %q", name, got, want)
			}
		}
	}
}
