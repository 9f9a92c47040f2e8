package change

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/slipway-dev/slipway/internal/redact"
)

// maxSchemaNodes bounds what is read of a schema. A definition of the largest size that the API server takes has about a
// third of it.
const maxSchemaNodes = 200_000

// Schema is what the schema of a kind says about its fields, as far as it matters here: how items of lists are told apart, and
// which values are secrets. The rest is left out, so that a definition of thousands of fields takes a few kilobytes, and so that
// an edit of a description changes nothing. Whether a number may be a string (int-or-string) does not matter: both are compared
// as they are written.
//
// A nil Schema is one that says nothing. Lists are then told apart by what they are called and look like.
type Schema struct {
	fields map[string]*Schema
	// values is the schema of the values of a map, and items of the items of a list.
	values, items *Schema
	list          listType
	keys          []string
	// secret reports whether the value is one: its format is password, or the schema is too deep to know.
	secret bool
	// declared reports whether the fields are all there may be. It is only known under a name like that of a secret.
	declared bool
}

type listType uint8

const (
	listUnknown listType = iota
	listAtomic
	listSet
	listMap
)

// NewSchema reads the schema of a version of a definition. What lies deeper, or is more, than could be of a real definition
// counts as secret.
func NewSchema(root *apiextensionsv1.JSONSchemaProps) *Schema {
	if root == nil {
		return nil
	}
	r := schemaReader{left: maxSchemaNodes}
	return r.read([]*apiextensionsv1.JSONSchemaProps{root}, MaxDepth, false)
}

type schemaReader struct{ left int }

// read makes one schema of several that all describe the same value: the schema, and the branches of its allOf, anyOf, oneOf.
// It returns nil if they say nothing of interest. Under a secret's name everything is of interest.
func (r *schemaReader) read(schemas []*apiextensionsv1.JSONSchemaProps, depth int, whole bool) *Schema {
	schemas = r.branches(schemas)
	if depth == 0 || r.left <= 0 {
		return &Schema{secret: true}
	}
	result := &Schema{}
	for _, s := range schemas {
		result.describe(s)
	}
	if result.secret {
		return result
	}
	r.readFields(result, schemas, depth, whole)
	var items, values []*apiextensionsv1.JSONSchemaProps
	for _, s := range schemas {
		if s.Items != nil && s.Items.Schema != nil {
			items = append(items, s.Items.Schema)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			values = append(values, s.AdditionalProperties.Schema)
		}
	}
	if len(items) > 0 {
		result.items = r.read(items, depth-1, whole)
	}
	if len(values) > 0 {
		result.values = r.read(values, depth-1, whole)
	}
	result.declared = whole && len(result.fields) > 0 && len(values) == 0 && !preserves(schemas)
	if !whole && result.says() == 0 {
		return nil
	}
	return result
}

// describe takes over what a schema says about the value itself.
func (s *Schema) describe(from *apiextensionsv1.JSONSchemaProps) {
	s.secret = s.secret || from.Format == "password"
	if from.XListType == nil || s.list != listUnknown {
		return
	}
	switch *from.XListType {
	case "atomic":
		s.list = listAtomic
	case "set":
		s.list = listSet
	case "map":
		if len(from.XListMapKeys) > 0 {
			s.list, s.keys = listMap, slices.Sorted(slices.Values(from.XListMapKeys))
		}
	}
}

// readFields reads the fields of an object. A field of which nothing is of interest is left out.
func (r *schemaReader) readFields(into *Schema, schemas []*apiextensionsv1.JSONSchemaProps, depth int, whole bool) {
	byName := map[string][]*apiextensionsv1.JSONSchemaProps{}
	for _, s := range schemas {
		for name := range s.Properties {
			property := s.Properties[name]
			byName[name] = append(byName[name], &property)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		field := r.read(byName[name], depth-1, whole || redact.HasWord(name))
		if field == nil {
			continue
		}
		if into.fields == nil {
			into.fields = map[string]*Schema{}
		}
		into.fields[name] = field
	}
}

// branches adds the branches of the schemas, and counts.
func (r *schemaReader) branches(schemas []*apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	result := slices.Clone(schemas)
	for i := 0; i < len(result); i++ {
		if r.left--; r.left <= 0 {
			break
		}
		for _, branch := range [][]apiextensionsv1.JSONSchemaProps{result[i].AllOf, result[i].AnyOf, result[i].OneOf} {
			for j := range branch {
				result = append(result, &branch[j])
			}
		}
	}
	return result
}

func preserves(schemas []*apiextensionsv1.JSONSchemaProps) bool {
	return slices.ContainsFunc(schemas, func(s *apiextensionsv1.JSONSchemaProps) bool {
		return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.XEmbeddedResource
	})
}

// says counts what a schema says.
func (s *Schema) says() int {
	count := len(s.fields)
	for _, said := range []bool{s.secret, s.list != listUnknown, s.items != nil, s.values != nil} {
		if said {
			count++
		}
	}
	return count
}

// field is the schema of a member of an object, nil if nothing is known.
func (s *Schema) field(name string) *Schema {
	if s == nil {
		return nil
	}
	if field := s.fields[name]; field != nil {
		return field
	}
	return s.values
}

// item is the schema of an item of a list, nil if nothing is known.
func (s *Schema) item() *Schema {
	if s == nil {
		return nil
	}
	return s.items
}

// declares reports whether a name is one of the fields that a schema lists, and not one that somebody chose.
func (s *Schema) declares(name string) bool { return s != nil && s.declared && s.fields[name] != nil }
