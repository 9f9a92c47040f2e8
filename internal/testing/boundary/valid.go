package boundary

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// valid lists the values of a property that are accepted: unset, default, the bounds,
// and some between them.
func (w *walker) valid(n node) []Value {
	var list []Value
	if n.presence == optional {
		list = append(list, Value{Name: "unset", Unset: true})
	}
	if n.schema.Default != nil {
		list = append(list, Value{Name: "default", Value: decode(*n.schema.Default)})
	}
	ordinary := w.ordinary(n)
	if len(ordinary) == 0 {
		w.problem("%s: the schema cannot tell a value: give examples", n.path)
		return list
	}
	return append(append(list, w.bounds(n, ordinary[0].Value)...), ordinary...)
}

// ordinary lists values that nothing is special about: the ones that lists, maps and
// objects are made of.
func (w *walker) ordinary(n node) []Value {
	if examples := w.hints[n.path].Examples; len(examples) > 0 {
		list, _ := normal(examples).([]any)
		return named(list)
	}
	schema := n.schema
	switch {
	case len(schema.Enum) > 0:
		var members []any
		for _, member := range schema.Enum {
			members = append(members, decode(member))
		}
		return named(members)
	case restricted(schema):
		return nil
	case schema.Type == "integer" || schema.Type == "number":
		return ordinaryNumbers(schema)
	case schema.Type == "boolean":
		return named([]any{true, false})
	case schema.Type == "string":
		return ordinaryStrings(schema)
	case schema.Type == "array":
		return w.ordinaryLists(n)
	case schema.Type == "object" && valuesOf(n) != nil:
		return w.ordinaryMaps(n)
	case schema.Type == "object" && len(schema.Properties) > 0:
		return w.ordinaryObjects(n)
	default:
		return nil
	}
}

// restricted reports whether a schema accepts less than its type and bounds say, in a way
// that values cannot be derived from.
func restricted(schema *apiextensionsv1.JSONSchemaProps) bool {
	scalar := schema.Type != "object" && schema.Type != "array"
	return schema.XIntOrString || schema.Pattern != "" || schema.MultipleOf != nil ||
		schema.Type == "string" && schema.Format != "" ||
		scalar && len(schema.XValidations) > 0
}

// ordinaryNumbers returns a number that is neither a bound nor the default.
func ordinaryNumbers(schema *apiextensionsv1.JSONSchemaProps) []Value {
	number := int64(1)
	if least := lowest(schema); least != nil {
		number = *least + 1
	}
	if schema.Default != nil && decode(*schema.Default) == any(number) {
		number++
	}
	if most := highest(schema); most != nil && number > *most {
		number = *most
	}
	return []Value{{Name: fmt.Sprint(number), Value: number}}
}

func lowest(schema *apiextensionsv1.JSONSchemaProps) *int64 {
	return bound(schema.Minimum, schema.ExclusiveMinimum, 1)
}

func highest(schema *apiextensionsv1.JSONSchemaProps) *int64 {
	return bound(schema.Maximum, schema.ExclusiveMaximum, -1)
}

func bound(limit *float64, exclusive bool, inside int64) *int64 {
	if limit == nil {
		return nil
	}
	number := int64(*limit)
	if exclusive {
		number += inside
	}
	return &number
}

func ordinaryStrings(schema *apiextensionsv1.JSONSchemaProps) []Value {
	length := max(1, int(valueOr(schema.MinLength, 1)))
	return []Value{
		{Name: "another", Value: strings.Repeat("a", length)},
		{Name: "yet another", Value: strings.Repeat("b", length)},
	}
}

// ordinaryLists returns lists that differ in content, length and order.
func (w *walker) ordinaryLists(n node) []Value {
	itemNode := itemsOf(n)
	if itemNode == nil {
		return nil
	}
	items := w.ordinary(*itemNode)
	switch len(items) {
	case 0:
		return nil
	case 1:
		return []Value{{Name: "one", Value: []any{items[0].Value}}}
	}
	first, second := items[0].Value, items[1].Value
	return []Value{
		{Name: "one", Value: []any{first}},
		{Name: "another", Value: []any{second}},
		{Name: "both", Value: []any{first, second}},
		{Name: "both, turned round", Value: []any{second, first}},
	}
}

// ordinaryMaps returns maps that differ in keys and in values.
func (w *walker) ordinaryMaps(n node) []Value {
	values := w.ordinary(*valuesOf(n))
	if len(values) == 0 {
		return nil
	}
	key := w.key(n)
	first, last := values[0].Value, values[len(values)-1].Value
	return []Value{
		{Name: "one", Value: map[string]any{key: first}},
		{Name: "another value", Value: map[string]any{key: last}},
		{Name: "another key", Value: map[string]any{vary(key, 0): first}},
		{Name: "both", Value: map[string]any{key: first, vary(key, 0): last}},
	}
}

func (w *walker) key(n node) string {
	if key := w.hints[n.path].Key; key != "" {
		return key
	}
	return "a"
}

// ordinaryObjects returns an object with its required fields alone, and one with all.
func (w *walker) ordinaryObjects(n node) []Value {
	least, most := map[string]any{}, map[string]any{}
	for _, field := range fields(n) {
		name := strings.TrimPrefix(field.path, n.path+".")
		values := w.ordinary(field)
		if len(values) == 0 {
			return nil
		}
		if field.presence == required {
			least[name] = values[0].Value
		}
		most[name] = values[len(values)-1].Value
	}
	return []Value{{Name: "required", Value: least}, {Name: "all", Value: most}}
}

// bounds lists the smallest and the largest values. example is a valid value.
func (w *walker) bounds(n node, example any) []Value {
	schema := n.schema
	switch {
	case len(schema.Enum) > 0:
		return nil
	case schema.Type == "integer" || schema.Type == "number":
		return numberBounds(schema)
	case schema.Type == "string":
		return stringBounds(schema, example)
	case schema.Type == "array":
		return w.listBounds(n)
	case schema.Type == "object" && valuesOf(n) != nil:
		return w.mapBounds(n)
	case schema.Type == "object" && len(schema.Required) == 0 && len(schema.Properties) > 0 && len(schema.XValidations) == 0:
		return []Value{{Name: "empty", Value: map[string]any{}}}
	default:
		return nil
	}
}

func numberBounds(schema *apiextensionsv1.JSONSchemaProps) []Value {
	var list []Value
	if least := lowest(schema); least != nil {
		list = append(list, Value{Name: "minimum", Value: *least})
	}
	if most := highest(schema); most != nil {
		list = append(list, Value{Name: "maximum", Value: *most})
	}
	return list
}

// stringBounds returns the shortest and the longest string. A restricted one can only
// be made longer, from an example.
func stringBounds(schema *apiextensionsv1.JSONSchemaProps, example any) []Value {
	var list []Value
	if !restricted(schema) {
		list = append(list, Value{Name: "shortest", Value: strings.Repeat("a", int(valueOr(schema.MinLength, 0)))})
	}
	if sample, ok := example.(string); ok && schema.MaxLength != nil {
		list = append(list, Value{Name: "longest", Value: extend(sample, int(*schema.MaxLength))})
	}
	return list
}

// extend repeats the last letter of a text until it is that long.
func extend(sample string, length int) string {
	last := "a"
	if sample != "" {
		last = sample[len(sample)-1:]
	}
	return sample + strings.Repeat(last, max(0, length-len(sample)))
}

func (w *walker) listBounds(n node) []Value {
	var list []Value
	if valueOr(n.schema.MinItems, 0) == 0 {
		list = append(list, Value{Name: "empty", Value: []any{}})
	}
	if n.schema.MaxItems != nil {
		if items := w.full(n, int(*n.schema.MaxItems)); items != nil {
			list = append(list, Value{Name: "most", Value: items})
		}
	}
	return list
}

// full returns a list of that many items, or nil.
func (w *walker) full(n node, count int) []any {
	itemNode := itemsOf(n)
	if itemNode == nil {
		return nil
	}
	items := w.ordinary(*itemNode)
	if len(items) == 0 {
		return nil
	}
	distinctFields := append(append([]string(nil), n.schema.XListMapKeys...), w.hints[n.path].Distinct...)
	list := make([]any, count)
	for i := range list {
		list[i] = varyItem(items[0].Value, i, distinctFields)
	}
	return list
}

// varyItem returns the i-th of items that differ: in themselves, or in some of their fields.
func varyItem(item any, i int, distinctFields []string) any {
	object, ok := item.(map[string]any)
	if !ok {
		return varyAny(item, i)
	}
	copied := map[string]any{}
	for name, value := range object {
		copied[name] = value
	}
	for _, name := range distinctFields {
		copied[name] = varyAny(copied[name], i)
	}
	return copied
}

func varyAny(value any, i int) any {
	switch value := value.(type) {
	case string:
		return vary(value, i)
	case int64:
		return value + int64(i)
	default:
		return value
	}
}

func vary(sample string, i int) string { return fmt.Sprintf("%s%d", sample, i) }

func (w *walker) mapBounds(n node) []Value {
	list := []Value{{Name: "empty", Value: map[string]any{}}}
	if n.schema.MaxProperties != nil {
		if content := w.fullMap(n, int(*n.schema.MaxProperties)); content != nil {
			list = append(list, Value{Name: "most", Value: content})
		}
	}
	return list
}

func (w *walker) fullMap(n node, count int) map[string]any {
	values := w.ordinary(*valuesOf(n))
	if len(values) == 0 {
		return nil
	}
	content := map[string]any{}
	for i := range count {
		content[vary(w.key(n), i)] = values[i%len(values)].Value
	}
	return content
}

func valueOr(pointer *int64, fallback int64) int64 {
	if pointer == nil {
		return fallback
	}
	return *pointer
}
