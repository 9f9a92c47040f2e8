package crdcheck

import (
	"fmt"
	"math/rand/v2"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// random makes schemas, changes of them, and objects. What it makes is small, so that different parts of a schema meet.
type random struct{ *rand.Rand }

func (r random) one(n int) bool { return r.IntN(n) == 0 }

func pick[T any](r random, values ...T) T { return values[r.IntN(len(values))] }

// schema returns a schema without constraints.
func (r random) schema(depth int) apiextensionsv1.JSONSchemaProps {
	kinds := []string{"string", "string", "integer", "number", "boolean", "int-or-string"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "object", "map", "list", "list", "list map", "list map", "kept")
	}
	s := apiextensionsv1.JSONSchemaProps{Nullable: r.one(6)}
	switch kind := pick(r, kinds...); kind {
	case "int-or-string":
		s.XIntOrString = true
	case "object":
		nullable := s.Nullable
		s = r.object(depth)
		s.Nullable = nullable
	case "kept":
		s.Type, s.XPreserveUnknownFields = "object", ptr.To(true)
	case "map":
		s.Type = "object"
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: ptr.To(r.schema(depth - 1))}
	case "list":
		s.Type, s.Items = "array", &apiextensionsv1.JSONSchemaPropsOrArray{Schema: ptr.To(r.schema(depth - 1))}
		if items := s.Items.Schema; r.one(3) && (items.Type == "string" || items.Type == "integer") {
			s.XListType, items.Nullable = ptr.To("set"), false
		}
	case "list map":
		s = r.listMap(depth)
	default:
		s.Type = kind
	}
	return s
}

func (r random) object(depth int) apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, name := range []string{"a", "b", "c", "d"} {
		if !r.one(3) {
			s.Properties[name] = r.schema(depth - 1)
		}
	}
	return s
}

func (r random) listMap(depth int) apiextensionsv1.JSONSchemaProps {
	items := r.object(depth)
	items.Properties["k"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	keys := []string{"k"}
	if r.one(3) {
		items.Properties["j"] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
		keys = append(keys, "j")
	}
	items.Required = slices.Clone(keys)
	s := apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}}
	if !r.one(3) {
		s.XListType, s.XListMapKeys = ptr.To("map"), keys
	}
	return s
}

// value returns a value of a schema, which has no constraints.
func (r random) value(s *apiextensionsv1.JSONSchemaProps) any {
	if s.Nullable && r.one(5) {
		return nil
	}
	switch {
	case s.XIntOrString:
		return pick[any](r, int64(1), "1", "a")
	case s.XPreserveUnknownFields != nil:
		return pick[any](r, map[string]any{}, map[string]any{"a": "x", "b": int64(1)}, map[string]any{"apiVersion": "v1", "kind": "Pod", "l": []any{nil, "x"}})
	case s.Type == "string":
		return pick(r, "", "a", "b", "ab", "abcd", "2026-01-02T03:04:05Z")
	case s.Type == "integer":
		return int64(r.IntN(6) - 1)
	case s.Type == "number":
		return pick(r, -0.5, 1.5, 2.25, 1000000.5)
	case s.Type == "boolean":
		return r.one(2)
	case s.Type == "array":
		return r.list(s)
	}
	object := map[string]any{}
	for _, name := range names(s.Properties, nil) {
		property := s.Properties[name]
		if slices.Contains(s.Required, name) || !r.one(4) {
			object[name] = r.value(&property)
		}
	}
	if values, _ := valuesOf(s); values != nil {
		for _, name := range []string{"a", "x.y/z", "k"} {
			if r.one(2) {
				object[name] = r.value(values)
			}
		}
	}
	return object
}

func (r random) list(s *apiextensionsv1.JSONSchemaProps) any {
	list := []any{}
	for i := range r.IntN(4) {
		item := r.value(s.Items.Schema)
		if object, ok := item.(map[string]any); ok && slices.Contains(s.Items.Schema.Required, "k") && s.XListType != nil {
			object["k"] = fmt.Sprintf("k%d", i)
		}
		if s.XListType != nil && *s.XListType == "set" && slices.Contains(list, item) {
			continue
		}
		list = append(list, item)
	}
	return list
}

// change returns a schema with constraints, other types, and fields that come and go.
func (r random) change(s apiextensionsv1.JSONSchemaProps, likely int) apiextensionsv1.JSONSchemaProps {
	if r.IntN(100) < likely {
		r.constrain(&s)
	}
	if r.IntN(400) < likely && s.Type != "object" && s.Type != "array" {
		s = apiextensionsv1.JSONSchemaProps{Type: pick(r, "string", "integer", "boolean", "number")}
	}
	for _, name := range names(s.Properties, nil) {
		if slices.Contains(s.XListMapKeys, name) || name == "k" || name == "j" {
			continue
		}
		if r.IntN(300) < likely {
			delete(s.Properties, name)
			s.Required = slices.DeleteFunc(s.Required, func(required string) bool { return required == name })
			continue
		}
		s.Properties[name] = r.change(s.Properties[name], likely)
	}
	if s.Items != nil {
		s.Items.Schema = ptr.To(r.change(*s.Items.Schema, likely))
	}
	if values, _ := valuesOf(&s); values != nil {
		s.AdditionalProperties.Schema = ptr.To(r.change(*values, likely))
	}
	return s
}

func (r random) constrain(s *apiextensionsv1.JSONSchemaProps) {
	if r.one(8) {
		s.Nullable = !s.Nullable
	}
	switch {
	case s.XIntOrString:
		s.XIntOrString, s.Type = false, pick(r, "integer", "string")
	case s.XPreserveUnknownFields != nil:
		if r.one(2) {
			s.XPreserveUnknownFields = nil
		} else {
			s.XEmbeddedResource = true
		}
	case s.Type == "string":
		r.constrainString(s)
	case s.Type == "integer" || s.Type == "number":
		r.constrainNumber(s)
	case s.Type == "array":
		r.constrainList(s)
	case s.Type == "object":
		r.constrainObject(s)
	}
}

func (r random) constrainString(s *apiextensionsv1.JSONSchemaProps) {
	switch r.IntN(10) {
	case 0:
		s.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"abcd"`)}}
	case 1:
		s.MaxLength = ptr.To(int64(r.IntN(3)))
	case 2:
		s.MinLength = ptr.To(int64(1 + r.IntN(3)))
	case 3:
		s.Pattern = pick(r, "^a", "b$", "^$")
	case 4:
		s.Format = pick(r, "date-time", "ipv4", "unheard-of")
	case 5:
		s.AnyOf = []apiextensionsv1.JSONSchemaProps{{Pattern: "^a"}, {MaxLength: ptr.To(int64(0))}}
	case 6:
		s.Not = &apiextensionsv1.JSONSchemaProps{Pattern: "^a"}
	case 7:
		s.Default = &apiextensionsv1.JSON{Raw: []byte(pick(r, `"a"`, `"abcd"`))}
	default:
		s.XValidations = r.rules("self != 'a'", "self == oldSelf", "self.size() >= oldSelf.size()", "self.startsWith('a')", "self.size() < oldSelf.size()")
	}
}

func (r random) constrainNumber(s *apiextensionsv1.JSONSchemaProps) {
	switch r.IntN(6) {
	case 0:
		s.Maximum, s.ExclusiveMaximum = ptr.To(2.0), r.one(2)
	case 1:
		s.Minimum, s.ExclusiveMinimum = ptr.To(1.0), r.one(2)
	case 2:
		s.MultipleOf = ptr.To(2.0)
	case 3:
		if s.Type == "integer" {
			s.Enum = []apiextensionsv1.JSON{{Raw: []byte("1")}, {Raw: []byte("3")}}
		}
	case 4:
		s.Default = &apiextensionsv1.JSON{Raw: []byte("1")}
	default:
		s.XValidations = r.rules("self >= oldSelf", "double(self) < 2.0", "self > oldSelf", "self == oldSelf")
	}
}

func (r random) constrainList(s *apiextensionsv1.JSONSchemaProps) {
	switch r.IntN(6) {
	case 0:
		s.MaxItems = ptr.To(int64(r.IntN(3)))
	case 1:
		s.MinItems = ptr.To(int64(1 + r.IntN(2)))
	case 2, 3:
		r.changeListType(s)
	default:
		s.XValidations = r.rules("self.size() < 2", "self.size() >= oldSelf.size()", "self.size() > 0")
	}
}

func (r random) changeListType(s *apiextensionsv1.JSONSchemaProps) {
	items := s.Items.Schema
	switch {
	case s.XListType != nil:
		s.XListType, s.XListMapKeys = nil, nil
	case slices.Contains(items.Required, "k"):
		s.XListType, s.XListMapKeys, items.Nullable = ptr.To("map"), []string{"k"}, false
	case items.Type == "string" || items.Type == "integer":
		s.XListType, items.Nullable = ptr.To("set"), false
	}
}

func (r random) constrainObject(s *apiextensionsv1.JSONSchemaProps) {
	properties := names(s.Properties, nil)
	if len(properties) == 0 {
		s.MaxProperties = ptr.To(int64(r.IntN(3)))
		return
	}
	name := pick(r, properties...)
	property := s.Properties[name]
	switch r.IntN(9) {
	case 0, 1:
		if !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	case 2:
		s.MaxProperties = ptr.To(int64(1 + r.IntN(3)))
	case 3:
		s.MinProperties = ptr.To(int64(1 + r.IntN(3)))
	case 4:
		s.OneOf = []apiextensionsv1.JSONSchemaProps{{Required: []string{name}}, {Required: []string{pick(r, properties...)}}}
	case 5:
		s.AllOf = []apiextensionsv1.JSONSchemaProps{{Properties: map[string]apiextensionsv1.JSONSchemaProps{name: {Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte("1")}}}}}}
	case 6:
		s.Properties["e"] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"a"`)}}
	default:
		if property.Type == "string" {
			s.XValidations = r.rules(fmt.Sprintf("self.%s != 'a'", name), fmt.Sprintf("!has(self.%s) || self.%s != 'b'", name, name),
				fmt.Sprintf("has(self.%s) == has(oldSelf.%s)", name, name))
			return
		}
		s.XValidations = r.rules(fmt.Sprintf("has(self.%s)", name), fmt.Sprintf("!has(self.%s)", name), "self == oldSelf")
	}
}

func (r random) rules(texts ...string) []apiextensionsv1.ValidationRule {
	rule := apiextensionsv1.ValidationRule{Rule: pick(r, texts...)}
	if oldSelf.MatchString(rule.Rule) && r.one(3) {
		rule = apiextensionsv1.ValidationRule{Rule: "oldSelf.hasValue()", OptionalOldSelf: ptr.To(true)}
	}
	return []apiextensionsv1.ValidationRule{rule}
}

// pair returns a definition and what it is changed to.
func (r random) pair() (before, after *apiextensionsv1.CustomResourceDefinition) {
	root := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": r.object(3)}}
	if r.one(2) {
		root.Properties["status"] = r.object(2)
	}
	before = definition(&root)
	changed := root.DeepCopy()
	likely := 10 + r.IntN(50)
	for _, name := range names(root.Properties, nil) {
		changed.Properties[name] = r.change(changed.Properties[name], likely)
	}
	if r.one(10) {
		changed.Required = []string{pick(r, "spec", "status")}
	}
	if r.one(10) {
		changed.XValidations = r.rules("has(self.spec) && self.spec == oldSelf.spec", "has(self.status)")
	}
	after = definition(changed)
	if _, has := root.Properties["status"]; has && r.one(2) {
		withStatus(before)
		withStatus(after)
	}
	return before, after
}

// instance returns an object of a definition.
func (r random) instance(crd *apiextensionsv1.CustomResourceDefinition) map[string]any {
	object, _ := r.value(schemaOf(&crd.Spec.Versions[0])).(map[string]any)
	object["apiVersion"], object["kind"] = crd.Spec.Group+"/v1", crd.Spec.Names.Kind
	object["metadata"] = map[string]any{"name": "w", "namespace": "default"}
	return object
}
