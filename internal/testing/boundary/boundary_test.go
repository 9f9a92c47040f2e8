package boundary

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(text), schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// list writes values as "name: JSON", lengths instead of what is long.
func list(values []Value) []string {
	var lines []string
	for _, v := range values {
		line := v.Name
		if !v.Unset {
			content := text(v.Value)
			if len(content) > 60 {
				content = fmt.Sprintf("%d characters", len(content))
			}
			line += ": " + content
		}
		lines = append(lines, line)
	}
	return lines
}

func TestValuesOfAProperty(t *testing.T) {
	tests := map[string]struct {
		schema         string
		required       bool
		hint           Hint
		valid, invalid []string
	}{
		"a number with bounds and default": {
			schema:  `{type: integer, minimum: 0, maximum: 1000, default: 1}`,
			valid:   []string{"unset", "default: 1", "minimum: 0", "maximum: 1000", "2: 2"},
			invalid: []string{`of another type: "text"`, "below the minimum: -1", "above the maximum: 1001"},
		},
		"a number whose bounds do not belong to it": {
			schema:   `{type: integer, minimum: 0, exclusiveMinimum: true, maximum: 10, exclusiveMaximum: true}`,
			required: true,
			valid:    []string{"minimum: 1", "maximum: 9", "2: 2"},
			invalid:  []string{"unset", `of another type: "text"`, "below the minimum: 0", "above the maximum: 10"},
		},
		"a number without bounds": {
			schema:  `{type: integer}`,
			valid:   []string{"unset", "1: 1"},
			invalid: []string{`of another type: "text"`},
		},
		"a number with one value": {
			schema:   `{type: integer, minimum: 3, maximum: 3}`,
			required: true,
			valid:    []string{"minimum: 3"},
			invalid:  []string{"unset", `of another type: "text"`, "below the minimum: 2", "above the maximum: 4"},
		},
		"a switch": {
			schema:  `{type: boolean}`,
			valid:   []string{"unset", "true: true", "false: false"},
			invalid: []string{`of another type: "text"`},
		},
		"an enum": {
			schema:  `{type: string, enum: [Rollback, Hold], default: Rollback}`,
			valid:   []string{"unset", `default: "Rollback"`, `Hold: "Hold"`},
			invalid: []string{"of another type: 7", `none of the enum: "none-of-the-enum"`},
		},
		"any text": {
			schema:  `{type: string, maxLength: 4}`,
			valid:   []string{"unset", `shortest: ""`, `longest: "aaaa"`, `another: "a"`, `yet another: "b"`},
			invalid: []string{"of another type: 7", `too long: "aaaaa"`},
		},
		"any text of some length": {
			schema:   `{type: string, minLength: 2, maxLength: 4}`,
			required: true,
			valid:    []string{`shortest: "aa"`, `longest: "aaaa"`, `yet another: "bb"`},
			invalid:  []string{"unset", "of another type: 7", `too short: "a"`, `too long: "aaaaa"`},
		},
		"text with a rule": {
			schema:  `{type: string, minLength: 1, maxLength: 6, x-kubernetes-validations: [{rule: "self.startsWith('/')"}]}`,
			hint:    Hint{Examples: []any{"/a", "/b"}, Invalid: []Invalid{{Value: "a"}}},
			valid:   []string{"unset", `longest: "/aaaaa"`, `/a: "/a"`, `/b: "/b"`},
			invalid: []string{"of another type: 7", `too short: ""`, `too long: "/aaaaaa"`, `a: "a"`},
		},
		"a quantity": {
			schema:  `{anyOf: [{type: integer}, {type: string}], pattern: '^[0-9]+(Gi)?$', x-kubernetes-int-or-string: true}`,
			hint:    Hint{Examples: []any{"1Gi", float64(5)}},
			valid:   []string{"unset", `1Gi: "1Gi"`, "5: 5"},
			invalid: []string{"of another type: true", `against the pattern: "not this"`},
		},
		"a list": {
			schema:   `{type: array, maxItems: 3, items: {type: string, maxLength: 2}}`,
			required: false,
			valid: []string{
				"unset", "empty: []", `most: ["a0","a1","a2"]`, `one: ["a"]`, `another: ["b"]`, `both: ["a","b"]`, `both, turned round: ["b","a"]`,
			},
			invalid: []string{`of another type: "text"`, `one too many: ["a0","a1","a2","a3"]`},
		},
		"a set that is not empty": {
			schema:   `{type: array, minItems: 1, maxItems: 2, x-kubernetes-list-type: set, items: {type: integer}}`,
			required: true,
			valid:    []string{"most: [1,2]", "one: [1]"},
			invalid:  []string{"unset", `of another type: "text"`, "one too many: [1,2,3]", "one too few: []", "one twice: [1,1]"},
		},
		"a list with keys": {
			schema: `{type: array, maxItems: 2, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name],
				items: {type: object, required: [name], properties: {name: {type: string}}}}`,
			hint: Hint{Without: []string{"both, turned round", "both"}},
			valid: []string{
				"unset", "empty: []", `most: [{"name":"a0"},{"name":"a1"}]`, `one: [{"name":"a"}]`, `another: [{"name":"b"}]`,
			},
			invalid: []string{`of another type: "text"`, `one too many: [{"name":"a0"},{"name":"a1"},{"name":"a2"}]`, `one twice: [{"name":"a0"},{"name":"a0"}]`},
		},
		"a map": {
			schema: `{type: object, maxProperties: 2, additionalProperties: {type: boolean}}`,
			hint:   Hint{Key: "K"},
			valid: []string{
				"unset", "empty: {}", `most: {"K0":true,"K1":false}`, `one: {"K":true}`, `another value: {"K":false}`,
				`another key: {"K0":true}`, `both: {"K":true,"K0":false}`,
			},
			invalid: []string{`of another type: "text"`, `one too many: {"K0":true,"K1":false,"K2":true}`},
		},
		"an object": {
			schema:  `{type: object, required: [a], properties: {a: {type: integer}, b: {type: boolean}}}`,
			valid:   []string{"unset", `required: {"a":1}`, `all: {"a":1,"b":false}`},
			invalid: []string{`of another type: "text"`},
		},
		"an object in which nothing is required": {
			schema:  `{type: object, properties: {b: {type: boolean}}}`,
			valid:   []string{"unset", "empty: {}", `all: {"b":false}`},
			invalid: []string{`of another type: "text"`},
		},
		"a valid value that is refused": {
			schema:  `{type: boolean}`,
			hint:    Hint{Refused: map[string]string{"unset": "set it"}},
			valid:   []string{"true: true", "false: false"},
			invalid: []string{`of another type: "text"`, "unset"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"x": *parse(t, tc.schema)}}
			if tc.required {
				object.Required = []string{"x"}
			}
			properties, err := Properties("spec", object, map[string]Hint{"spec.x": tc.hint})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.valid, list(properties[0].Valid)); diff != "" {
				t.Errorf("valid (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.invalid, list(properties[0].Invalid)); diff != "" {
				t.Errorf("invalid (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryPropertyIsFound(t *testing.T) {
	schema := parse(t, `
type: object
properties:
  list: {type: array, items: {type: object, properties: {name: {type: string}}}}
  map: {type: object, additionalProperties: {type: array, items: {type: integer}}}
  object: {type: object, required: [a], properties: {b: {type: boolean}, a: {type: object, properties: {c: {type: integer}}}}}
`)
	properties, err := Properties("spec", schema, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range properties {
		got = append(got, p.Path)
	}
	want := []string{
		"spec.list", "spec.list[]", "spec.list[].name",
		"spec.map", "spec.map.*", "spec.map.*[]",
		"spec.object", "spec.object.a", "spec.object.a.c", "spec.object.b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsNotKnownIsAskedFor(t *testing.T) {
	tests := map[string]struct {
		schema string
		hints  map[string]Hint
		want   string
	}{
		"a rule":             {`{properties: {x: {type: string, x-kubernetes-validations: [{rule: "true"}]}}}`, nil, "spec.x: the schema cannot tell a value: give examples"},
		"a pattern below":    {`{properties: {x: {type: array, items: {type: string, pattern: a}}}}`, nil, "spec.x[]: the schema cannot tell a value: give examples"},
		"no type":            {`{properties: {x: {x-kubernetes-preserve-unknown-fields: true}}}`, nil, "spec.x: the schema cannot tell a value: give examples"},
		"a list of anything": {`{properties: {x: {type: array}}}`, nil, "spec.x: the schema cannot tell a value: give examples"},
		"a hint about nothing": {
			`{properties: {x: {type: boolean}}}`, map[string]Hint{"spec.y": {}}, "spec.y: there is no such property",
		},
		"doing without nothing": {
			`{properties: {x: {type: boolean}}}`, map[string]Hint{"spec.x": {Without: []string{"most"}}}, `spec.x: there is no value "most" to do without`,
		},
		"nothing to be refused": {
			`{properties: {x: {type: boolean}}}`, map[string]Hint{"spec.x": {Refused: map[string]string{"most": ""}}}, `spec.x: there is no valid value "most" to be refused`,
		},
		"a pattern that is none": {
			`{properties: {x: {type: string, pattern: "("}}}`, map[string]Hint{"spec.x": {Examples: []any{"a"}}}, "spec.x: the pattern cannot be parsed",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Properties("spec", parse(t, tc.schema), tc.hints)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestPuttingAValueIntoAnObject(t *testing.T) {
	object := func() map[string]any {
		return map[string]any{"spec": map[string]any{
			"port": int64(1),
			"env":  map[string]any{"B": "b", "A": "a"},
			"list": []any{map[string]any{"name": "x", "keys": []any{"k", "l"}}, map[string]any{}},
			"none": []any{},
		}}
	}
	tests := map[string]struct {
		path  string
		value Value
		want  string // empty: there is no room
		names string
	}{
		"a field":            {"spec.port", Value{Value: int64(2)}, `{"env":{"A":"a","B":"b"},"list":[{"keys":["k","l"],"name":"x"},{}],"none":[],"port":2}`, "spec.port"},
		"a field left out":   {"spec.port", Value{Unset: true}, `{"env":{"A":"a","B":"b"},"list":[{"keys":["k","l"],"name":"x"},{}],"none":[]}`, "spec.port"},
		"a field of an item": {"spec.list[].name", Value{Value: "y"}, `{"env":{"A":"a","B":"b"},"list":[{"keys":["k","l"],"name":"y"},{}],"none":[],"port":1}`, "spec.list[0].name"},
		"an item of an item": {"spec.list[].keys[]", Value{Value: "m"}, `{"env":{"A":"a","B":"b"},"list":[{"keys":["m","l"],"name":"x"},{}],"none":[],"port":1}`, "spec.list[0].keys[0]"},
		"a value of a map":   {"spec.env.*", Value{Value: "z"}, `{"env":{"A":"z","B":"b"},"list":[{"keys":["k","l"],"name":"x"},{}],"none":[],"port":1}`, "spec.env.A spec.env[A]"},
		"an empty list":      {"spec.none[].name", Value{Value: "y"}, "", ""},
		"nothing to hold it": {"spec.health.path", Value{Value: "y"}, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := object()
			if HasRoom(before, tc.path) != (tc.want != "") {
				t.Fatalf("there is room: %v", HasRoom(before, tc.path))
			}
			changed, err := With(before, tc.path, tc.value)
			if (err == nil) != (tc.want != "") {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(), before); diff != "" {
				t.Errorf("the object itself was changed (-before +after):\n%s", diff)
			}
			if tc.want == "" {
				return
			}
			if diff := cmp.Diff(tc.want, text(changed["spec"])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := Has(changed, tc.path); got == tc.value.Unset {
				t.Errorf("has it: %v", got)
			}
			for _, called := range strings.Split(tc.names, " ") {
				if names := Names(before, tc.path); !strings.Contains(strings.Join(names, " "), called) {
					t.Errorf("it is called %q, want %q among them", names, called)
				}
			}
		})
	}
}
