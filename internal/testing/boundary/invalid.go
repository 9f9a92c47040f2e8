package boundary

import (
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// invalid lists the values of a property that are refused: just beyond every bound, of
// another type, and what hints add.
func (w *walker) invalid(n node) []Value {
	var list []Value
	if n.presence == required {
		list = append(list, Value{Name: "unset", Unset: true})
	}
	list = append(list, Value{Name: "of another type", Value: ofAnotherType(n.schema)})
	switch schema := n.schema; {
	case len(schema.Enum) > 0:
		list = append(list, Value{Name: "none of the enum", Value: "none-of-the-enum"})
	case schema.Type == "integer" || schema.Type == "number":
		list = append(list, invalidNumbers(schema)...)
	case schema.Type == "string" || schema.XIntOrString:
		list = append(list, w.invalidStrings(n)...)
	case schema.Type == "array":
		list = append(list, w.invalidLists(n)...)
	case schema.Type == "object" && valuesOf(n) != nil && schema.MaxProperties != nil:
		if content := w.fullMap(n, int(*schema.MaxProperties)+1); content != nil {
			list = append(list, Value{Name: "one too many", Value: content})
		}
	}
	var extra []any
	for _, given := range w.hints[n.path].Invalid {
		extra = append(extra, normal(given.Value))
	}
	for i, value := range named(extra) {
		value.Says = w.hints[n.path].Invalid[i].Says
		list = append(list, value)
	}
	return list
}

func ofAnotherType(schema *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case schema.XIntOrString:
		return true
	case schema.Type == "string":
		return int64(7)
	default:
		return "text"
	}
}

func invalidNumbers(schema *apiextensionsv1.JSONSchemaProps) []Value {
	var list []Value
	if least := lowest(schema); least != nil {
		list = append(list, Value{Name: "below the minimum", Value: *least - 1})
	}
	if most := highest(schema); most != nil {
		list = append(list, Value{Name: "above the maximum", Value: *most + 1})
	}
	return list
}

func (w *walker) invalidStrings(n node) []Value {
	var list []Value
	schema := n.schema
	if least := valueOr(schema.MinLength, 0); least > 0 {
		list = append(list, Value{Name: "too short", Value: strings.Repeat("a", int(least-1))})
	}
	if schema.MaxLength != nil {
		sample := ""
		if values := w.ordinary(n); len(values) > 0 {
			sample, _ = values[0].Value.(string)
		}
		list = append(list, Value{Name: "too long", Value: extend(sample, int(*schema.MaxLength)+1)})
	}
	if schema.Pattern == "" {
		return list
	}
	pattern, err := regexp.Compile(schema.Pattern)
	if err != nil {
		w.problem("%s: the pattern cannot be parsed: %w", n.path, err)
		return list
	}
	for _, probe := range []string{"not this", "", "!", "a"} {
		if !pattern.MatchString(probe) {
			return append(list, Value{Name: "against the pattern", Value: probe})
		}
	}
	return list
}

func (w *walker) invalidLists(n node) []Value {
	var list []Value
	one := w.full(n, 1)
	if one == nil {
		// What the items are is unknown, which is told where their values are listed.
		return nil
	}
	if n.schema.MaxItems != nil {
		list = append(list, Value{Name: "one too many", Value: w.full(n, int(*n.schema.MaxItems)+1)})
	}
	if least := valueOr(n.schema.MinItems, 0); least > 0 {
		list = append(list, Value{Name: "one too few", Value: w.full(n, int(least-1))})
	}
	if kind := n.schema.XListType; kind != nil && (*kind == "set" || *kind == "map") {
		list = append(list, Value{Name: "one twice", Value: []any{one[0], one[0]}})
	}
	return list
}
