package boundary

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Property is one property of a schema and the values to try it with.
type Property struct {
	// Path names it from the top of the object: spec.envFrom[].prefix is a field of the
	// items of a list, spec.env.* are the values of a map.
	Path string
	// Valid are values that the API server accepts, no two alike.
	Valid []Value
	// Invalid are values that it refuses.
	Invalid []Value
}

// Value is one value of a property.
type Value struct {
	// Name says what is special about it. It is unique among the valid values, and among
	// the invalid ones.
	Name string
	// Unset leaves the property out.
	Unset bool
	// Value is the value as JSON has it.
	Value any
	// Says is what the refusal of an invalid value has to say besides the property. It
	// comes from a hint.
	Says string
}

// Hint is what a schema cannot tell about a property.
type Hint struct {
	// Examples are valid values. They stand in for the ones that are derived, except for
	// unset, default and the bounds.
	Examples []any `json:"examples"`
	// Without are names of derived values that are not to be tried.
	Without []string `json:"without"`
	// Refused are names of derived valid values that are refused after all, with what the
	// refusal says.
	Refused map[string]string `json:"refused"`
	// Invalid are more values that are refused.
	Invalid []Invalid `json:"invalid"`
	// Key is the first key of a map. Default: a.
	Key string `json:"key"`
	// Distinct are the fields in which the items of a full list differ, where the list's
	// type does not say so.
	Distinct []string `json:"distinct"`
}

// Invalid is a value that is refused although the schema's bounds admit it.
type Invalid struct {
	Value any `json:"value"`
	// Says is what the refusal says.
	Says string `json:"says"`
}

// Properties returns every property below the one at path, parents before children. It
// fails where the schema cannot tell a value and no hint does, and where a hint speaks
// of nothing.
func Properties(path string, schema *apiextensionsv1.JSONSchemaProps, hints map[string]Hint) ([]Property, error) {
	w := &walker{hints: hints, visited: map[string]bool{}}
	w.below(node{path: path, schema: schema})
	for _, path := range slices.Sorted(maps.Keys(hints)) {
		if !w.visited[path] {
			w.problem("%s: there is no such property", path)
		}
	}
	return w.found, errors.Join(w.problems...)
}

// node is a property on the way through the schema.
type node struct {
	path   string
	schema *apiextensionsv1.JSONSchemaProps
	// presence says whether it may be left out.
	presence presence
}

type presence int

const (
	// required fields are refused when they are left out.
	required presence = iota
	// optional fields may be left out.
	optional
	// element is an item of a list or a value of a map: there is nothing to leave out.
	element
)

type walker struct {
	hints    map[string]Hint
	visited  map[string]bool
	found    []Property
	problems []error
}

func (w *walker) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Errorf(format, args...))
}

func (w *walker) visit(n node) {
	w.visited[n.path] = true
	property := Property{Path: n.path, Valid: distinct(w.valid(n)), Invalid: distinct(w.invalid(n))}
	hint := w.hints[n.path]
	for _, name := range slices.Sorted(maps.Keys(hint.Refused)) {
		i := slices.IndexFunc(property.Valid, func(v Value) bool { return v.Name == name })
		if i < 0 {
			w.problem("%s: there is no valid value %q to be refused", n.path, name)
			continue
		}
		refused := property.Valid[i]
		refused.Says = hint.Refused[name]
		property.Valid = slices.Delete(property.Valid, i, i+1)
		property.Invalid = append(property.Invalid, refused)
	}
	for _, name := range hint.Without {
		before := len(property.Valid) + len(property.Invalid)
		isIt := func(v Value) bool { return v.Name == name }
		property.Valid = slices.DeleteFunc(property.Valid, isIt)
		property.Invalid = slices.DeleteFunc(property.Invalid, isIt)
		if len(property.Valid)+len(property.Invalid) == before {
			w.problem("%s: there is no value %q to do without", n.path, name)
		}
	}
	w.found = append(w.found, property)
	w.below(n)
}

func (w *walker) below(n node) {
	for _, child := range fields(n) {
		w.visit(child)
	}
	if items := itemsOf(n); items != nil {
		w.visit(*items)
	}
	if values := valuesOf(n); values != nil {
		w.visit(*values)
	}
}

// fields are the fields of an object with fixed fields, by name.
func fields(n node) []node {
	var list []node
	for _, name := range slices.Sorted(maps.Keys(n.schema.Properties)) {
		schema := n.schema.Properties[name]
		child := node{path: n.path + "." + name, schema: &schema, presence: optional}
		if slices.Contains(n.schema.Required, name) {
			child.presence = required
		}
		list = append(list, child)
	}
	return list
}

func itemsOf(n node) *node {
	if n.schema.Items == nil || n.schema.Items.Schema == nil {
		return nil
	}
	return &node{path: n.path + "[]", schema: n.schema.Items.Schema, presence: element}
}

func valuesOf(n node) *node {
	if n.schema.AdditionalProperties == nil || n.schema.AdditionalProperties.Schema == nil {
		return nil
	}
	return &node{path: n.path + ".*", schema: n.schema.AdditionalProperties.Schema, presence: element}
}

// distinct keeps the first of equal values, and of values of the same name.
func distinct(values []Value) []Value {
	var kept []Value
	seen, named := map[string]bool{}, map[string]bool{}
	for _, v := range values {
		id := "unset"
		if !v.Unset {
			id = text(v.Value)
		}
		if seen[id] || named[v.Name] {
			continue
		}
		seen[id], named[v.Name] = true, true
		kept = append(kept, v)
	}
	return kept
}

// text is the JSON of a value.
func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

// longestName is how much of a value its name may repeat.
const longestName = 40

// named returns values that are called what they are, or by their number.
func named(values []any) []Value {
	var list []Value
	for i, value := range values {
		name, isText := value.(string)
		if !isText {
			name = text(value)
		}
		if len(name) > longestName || name == "" {
			name = fmt.Sprintf("example %d", i+1)
		}
		list = append(list, Value{Name: name, Value: value})
	}
	return list
}

func decode(raw apiextensionsv1.JSON) any {
	var value any
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		return nil
	}
	return normal(value)
}

// normal returns numbers without a fraction as integers, as unstructured objects have them.
func normal(value any) any {
	switch value := value.(type) {
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	case []any:
		for i := range value {
			value[i] = normal(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = normal(value[key])
		}
	}
	return value
}
