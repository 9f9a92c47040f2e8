package v1alpha1_test

import (
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Patterns that stay, because a rule that says all of it would cost more than the API server allows for 1000 routes. Beside each
// stands a rule that tells in a sentence what happens.
var costlyPatterns = map[string]bool{
	`^[^\x00-\x08\x0a-\x1f\x7f]*$`:                                           true, // HeaderValue
	`^[-A-Za-z0-9!#$%&*+.^_|~]+$`:                                            true, // ListedHeaderName
	`^([*]|https?://([*][.])?[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?)$`: true, // Origin
	`^[a-z0-9!#$&^_.+-]+/([a-z0-9!#$&^_.+-]+|\*)$`:                           true, // ContentType
}

// What the API server says of a format is a sentence: "must be of type date-time".
var plainFormats = map[string]bool{"": true, "int32": true, "int64": true, "date-time": true}

func TestWhatAUserWritesIsRefusedInASentence(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/slipway.dev_*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("there are %d definitions: %v", len(files), err)
	}
	rules := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			t.Fatal(err)
		}
		for i := range crd.Spec.Versions {
			root := crd.Spec.Versions[i].Schema.OpenAPIV3Schema
			delete(root.Properties, "status") // the operator writes it
			eachSchema(root, crd.Spec.Names.Kind+" ", func(s *apiextensionsv1.JSONSchemaProps, path string) {
				rules += len(s.XValidations)
				checkMessages(t, s, path)
			})
		}
	}
	if rules < 100 {
		t.Errorf("only %d rules were seen", rules)
	}
}

func checkMessages(t *testing.T, s *apiextensionsv1.JSONSchemaProps, path string) {
	for _, rule := range s.XValidations {
		if rule.Message == "" {
			t.Errorf("%s: the rule %q has no message", path, rule.Rule)
		}
	}
	if s.Pattern != "" && (!costlyPatterns[s.Pattern] || len(s.XValidations) == 0) {
		t.Errorf("%s is refused by the bare regular expression %q: write a rule with a message", path, s.Pattern)
	}
	if !plainFormats[s.Format] {
		t.Errorf("%s has the format %q: write a rule with a message", path, s.Format)
	}
	if s.XIntOrString && len(s.XValidations) == 0 {
		t.Errorf("%s takes any text: no rule says what an amount is", path)
	}
}

// eachSchema visits a schema and all in it.
func eachSchema(s *apiextensionsv1.JSONSchemaProps, path string, visit func(*apiextensionsv1.JSONSchemaProps, string)) {
	visit(s, path)
	for name := range s.Properties {
		child := s.Properties[name]
		eachSchema(&child, path+"."+name, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		eachSchema(s.Items.Schema, path+"[]", visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		eachSchema(s.AdditionalProperties.Schema, path+"{}", visit)
	}
}
