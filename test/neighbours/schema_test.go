package neighbours

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

type schema = apiextensionsv1.JSONSchemaProps

// schemas returns the schemas of our kinds, as they are installed.
func schemas(t *testing.T) map[string]*schema {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/slipway.dev_*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	found := map[string]*schema{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		found[crd.Spec.Names.Kind] = &spec
	}
	return found
}

// step leads from a field to one in it: a property by its name, or the items of a list or the values of a map by "*".
const items = "*"

// walk visits a schema and everything in it.
func walk(s *schema, path []string, visit func(s *schema, path []string)) {
	visit(s, path)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		walk(&property, append(slices.Clone(path), name), visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(s.Items.Schema, append(slices.Clone(path), items), visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(s.AdditionalProperties.Schema, append(slices.Clone(path), items), visit)
	}
}

// build makes a value of a schema in which the field at a path has a value. Of everything else there is what is required.
func build(s *schema, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if path[0] == items {
		if s.Items != nil {
			return []any{build(s.Items.Schema, path[1:], value)}
		}
		return map[string]any{"cpu": build(s.AdditionalProperties.Schema, path[1:], value)}
	}
	object, _ := smallest(s).(map[string]any)
	property := s.Properties[path[0]]
	object[path[0]] = build(&property, path[1:], value)
	return object
}

// smallest is the smallest value of a schema that could be one.
func smallest(s *schema) any {
	switch {
	case s.Default != nil:
		return fromJSON(s.Default.Raw)
	case len(s.Enum) > 0:
		return fromJSON(s.Enum[0].Raw)
	case s.XIntOrString:
		return "1"
	}
	switch s.Type {
	case "object":
		object := map[string]any{}
		for _, name := range s.Required {
			property := s.Properties[name]
			object[name] = smallest(&property)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			property := s.Properties[name]
			if _, there := object[name]; len(s.XValidations) > 0 && !there && property.Type == "object" {
				object[name] = smallest(&property) // a rule mostly asks for one of them
				break
			}
		}
		return object
	case "array":
		list := []any{}
		if s.MinItems != nil {
			for range *s.MinItems {
				list = append(list, smallest(s.Items.Schema))
			}
		}
		return list
	case "integer", "number":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 1
	case "boolean":
		return true
	default:
		return someText(s)
	}
}

func fromJSON(raw []byte) any {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil
	}
	return value
}

// someText is a text that a schema takes: one that means something in most places, or one by the pattern.
func someText(s *schema) string {
	for _, text := range []string{"app", "/a", "a.example.com", "1h", "http://a.example.com/a", "0 2 * * *", "s3://bucket", "A"} {
		if takes(s, text) {
			return text
		}
	}
	parsed, err := syntax.Parse(s.Pattern, syntax.Perl)
	if err != nil {
		return "a"
	}
	return match(parsed)
}

func takes(s *schema, text string) bool {
	if s.MaxLength != nil && int64(len(text)) > *s.MaxLength || s.MinLength != nil && int64(len(text)) < *s.MinLength {
		return false
	}
	if s.Pattern == "" {
		return true
	}
	pattern, err := regexp.Compile(s.Pattern)
	return err == nil && pattern.MatchString(text)
}

// match is a short text that an expression matches.
func match(e *syntax.Regexp) string {
	switch e.Op {
	case syntax.OpLiteral:
		return string(e.Rune)
	case syntax.OpCharClass:
		return string(e.Rune[0])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpCapture, syntax.OpPlus:
		return match(e.Sub[0])
	case syntax.OpRepeat:
		return strings.Repeat(match(e.Sub[0]), e.Min)
	case syntax.OpConcat:
		var all strings.Builder
		for _, sub := range e.Sub {
			all.WriteString(match(sub))
		}
		return all.String()
	case syntax.OpAlternate:
		return match(e.Sub[0])
	default:
		return ""
	}
}

// Every number and every list that somebody may write has a bound, so that nothing grows with it for ever.
func TestEveryNumberAndListHasABound(t *testing.T) {
	without := map[string]string{
		"MonitorRule selector.matchExpressions":          "a selector of Kubernetes: an object has 1.5 MB",
		"MonitorRule selector.matchExpressions.*.values": "a selector of Kubernetes: an object has 1.5 MB",
		"MonitorRule selector.matchLabels":               "a selector of Kubernetes: an object has 1.5 MB",
	}
	for kind, spec := range schemas(t) {
		walk(spec, nil, func(s *schema, path []string) {
			name := kind + " " + strings.Join(path, ".")
			bounded := true
			switch s.Type {
			case "integer", "number":
				bounded = s.Minimum != nil && s.Maximum != nil || len(s.Enum) > 0
			case "array":
				bounded = s.MaxItems != nil
			case "object":
				bounded = s.AdditionalProperties == nil || s.MaxProperties != nil
			}
			if _, known := without[name]; !bounded && !known {
				t.Errorf("%s has no bound", name)
			}
			if bounded {
				delete(without, name)
			}
		})
	}
	for name := range without {
		if !strings.HasPrefix(name, "MonitorRule ") {
			t.Errorf("%s is no field without a bound", name)
		}
	}
}

func fieldName(kind string, path []string, value any) string {
	return fmt.Sprintf("%s spec.%s=%.60s", kind, strings.Join(path, "."), fmt.Sprint(value))
}
