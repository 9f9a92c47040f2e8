package crdcheck

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/slipway-dev/slipway/internal/text"
)

// compareJunctors compares allOf, anyOf, oneOf and not. What is in them only constrains values, so each alternative is compared
// as a whole.
func (w *walk) compareJunctors(at *path, was, is *apiextensionsv1.JSONSchemaProps) {
	wasAny, isAny := anyOf(was), anyOf(is)
	w.compareAlternatives(at, "allOf", was.AllOf, is.AllOf, true)
	w.compareAlternatives(at, "anyOf", wasAny, isAny, false)
	w.compareOneOf(at, was.OneOf, is.OneOf)
	switch {
	case was.Not == nil && is.Not == nil:
	case was.Not == nil:
		w.add(Breaking, at.String(), JunctorAdded, "values that match a schema are refused now (not)")
	case is.Not == nil:
		w.add(Info, at.String(), JunctorRemoved, "values are not refused any more because of not")
	case schemaText(was.Not) != schemaText(is.Not):
		w.add(Risky, at.String(), JunctorChanged, "which values are refused changed (not)")
	}
}

// anyOf returns the alternatives of anyOf, without those that only spell out that a field is an integer or a string.
func anyOf(s *apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	if len(s.AnyOf) == 2 && schemaText(&s.AnyOf[0]) == `{"type":"integer"}` && schemaText(&s.AnyOf[1]) == `{"type":"string"}` {
		return nil
	}
	return s.AnyOf
}

// compareAlternatives compares schemas of which all have to hold, or one.
func (w *walk) compareAlternatives(at *path, name string, was, is []apiextensionsv1.JSONSchemaProps, all bool) {
	if len(was) == 0 && len(is) == 0 {
		return
	}
	before, after := schemaTexts(was), schemaTexts(is)
	gone, added := len(missing(before, after)), len(missing(after, before))
	// Of allOf each schema that comes refuses more. Of anyOf each that goes does.
	fewer, more := gone, added
	if all || len(before) == 0 || len(after) == 0 {
		fewer, more = added, gone
	}
	switch {
	case fewer == 0 && more == 0:
	case fewer > 0 && more > 0:
		w.add(Risky, at.String(), JunctorChanged, "%s: %s came, %d went", name, schemas(added), gone)
	case fewer > 0:
		w.add(Breaking, at.String(), JunctorAdded, "%s refuses more: it had %s, has %d", name, schemas(len(before)), len(after))
	default:
		w.add(Info, at.String(), JunctorRemoved, "%s refuses less: it had %s, has %d", name, schemas(len(before)), len(after))
	}
}

// compareOneOf compares schemas of which exactly one has to hold: both a schema that comes and one that goes can refuse.
func (w *walk) compareOneOf(at *path, was, is []apiextensionsv1.JSONSchemaProps) {
	if len(was) == 0 && len(is) == 0 {
		return
	}
	before, after := schemaTexts(was), schemaTexts(is)
	switch {
	case slices.Equal(before, after):
	case len(before) == 0:
		w.add(Breaking, at.String(), JunctorAdded, "exactly one of %s has to hold now (oneOf)", schemas(len(after)))
	case len(after) == 0:
		w.add(Info, at.String(), JunctorRemoved, "oneOf with %s is gone", schemas(len(before)))
	default:
		w.add(Risky, at.String(), JunctorChanged, "oneOf had %s, has %d; which ones changed", schemas(len(before)), len(after))
	}
}

func schemas(n int) string { return text.Count(int64(n), "schema") }

// schemaTexts returns schemas as texts, sorted.
func schemaTexts(schemas []apiextensionsv1.JSONSchemaProps) []string {
	texts := make([]string, 0, len(schemas))
	for i := range schemas {
		texts = append(texts, schemaText(&schemas[i]))
	}
	slices.Sort(texts)
	return texts
}

// schemaText returns a schema as JSON, without what is only for people.
func schemaText(s *apiextensionsv1.JSONSchemaProps) string {
	s = s.DeepCopy()
	strip(s)
	return jsonOf(s)
}

// strip removes what is only for people, from a schema and all within it.
func strip(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
	slices.Sort(s.Required)
	for i := range s.Enum {
		s.Enum[i].Raw = []byte(canonical(s.Enum[i]))
	}
	for name, property := range s.Properties {
		strip(&property)
		s.Properties[name] = property
	}
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			strip(&list[i])
		}
	}
	strip(s.Not)
	strip(itemsOf(s))
	if s.AdditionalProperties != nil {
		strip(s.AdditionalProperties.Schema)
	}
}
