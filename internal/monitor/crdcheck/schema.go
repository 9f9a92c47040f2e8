package crdcheck

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// walk goes along two schemas at the same time.
type walk struct {
	*findings
	// kept and keeps report whether the definition kept and keeps unknown fields everywhere.
	kept, keeps bool
}

// Fields that every object has. The API server knows them without a schema.
var metaFields = []string{"apiVersion", "kind", "metadata"}

// compare compares two schemas and what is below them. kept and keeps say whether unknown fields were and are kept here because
// the list around it says so.
func (w *walk) compare(at *path, was, is *apiextensionsv1.JSONSchemaProps, kept, keeps bool) {
	if same := w.compareTypes(at, was, is); !same {
		return
	}
	w.compareValues(at, was, is)
	w.compareBounds(at, was, is)
	w.compareJunctors(at, was, is)
	w.compareRules(at, was.XValidations, is.XValidations)
	w.compareMerging(at, was, is)
	w.compareDefaults(at, was, is)
	w.comparePreserving(at, was, is)

	kept, keeps = kept || w.kept || preserves(was), keeps || w.keeps || preserves(is)
	w.compareProperties(at, was, is, kept, keeps)
	w.compareRequired(at, was, is)
	w.compareMapValues(at, was, is, keeps)
	if before, after := itemsOf(was), itemsOf(is); before != nil && after != nil {
		w.compare(at.items(), before, after, kept, keeps)
	}
}

func preserves(s *apiextensionsv1.JSONSchemaProps) bool {
	return ptr.Deref(s.XPreserveUnknownFields, false)
}

func itemsOf(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

// valuesOf returns the schema of the values of a map without fixed keys. takes reports whether it has values, with a schema or without.
func valuesOf(s *apiextensionsv1.JSONSchemaProps) (schema *apiextensionsv1.JSONSchemaProps, takes bool) {
	if s.AdditionalProperties == nil {
		return nil, false
	}
	return s.AdditionalProperties.Schema, s.AdditionalProperties.Schema != nil || s.AdditionalProperties.Allows
}

func (w *walk) compareProperties(at *path, was, is *apiextensionsv1.JSONSchemaProps, kept, keeps bool) {
	wasValues, wasTakes := valuesOf(was)
	isValues, isTakes := valuesOf(is)
	for _, name := range names(was.Properties, is.Properties) {
		before, had := was.Properties[name]
		after, has := is.Properties[name]
		child := at.child(name)
		switch {
		case had && has:
			w.compare(child, &before, &after, false, false)
		case had:
			w.compareRemoved(child, &before, isValues, isTakes, keeps, isMeta(at, is, name))
		case wasValues != nil:
			w.compare(child, wasValues, &after, false, false)
		case isMeta(at, was, name):
		default:
			w.added(child, &after, kept || wasTakes)
		}
	}
}

// compareRemoved says of a property that is gone where its value is now.
func (w *walk) compareRemoved(at *path, was, values *apiextensionsv1.JSONSchemaProps, takes, keeps, meta bool) {
	switch {
	case meta:
	case values != nil:
		w.compare(at, was, values, false, false)
	case takes || keeps:
		w.add(
			Risky, at.String(), FieldUnchecked, "the field (%s) is gone from the schema: its value is kept and not checked any more",
			typeText(was),
		)
	default:
		w.add(Breaking, at.String(), FieldRemoved,
			"the field (%s) is gone: its value is removed when an object is read, and for good when it is next written", typeText(was))
	}
}

func (w *walk) added(at *path, is *apiextensionsv1.JSONSchemaProps, kept bool) {
	if kept {
		w.add(Breaking, at.String(), FieldChecked, "the field was kept as it was, and is checked now (%s)", typeText(is))
		return
	}
	w.add(Info, at.String(), FieldAdded, "the field is new (%s)", typeText(is))
}

// isMeta reports whether a field is known without a schema: at the root, and at that of an embedded object.
func isMeta(at *path, s *apiextensionsv1.JSONSchemaProps, name string) bool {
	return (at == nil || s.XEmbeddedResource) && slices.Contains(metaFields, name)
}

func (w *walk) compareRequired(at *path, was, is *apiextensionsv1.JSONSchemaProps) {
	for _, name := range missing(is.Required, was.Required) {
		property, known := is.Properties[name]
		switch {
		case known && property.Default != nil:
			w.add(Info, at.child(name).String(), RequiredAdded, "the field is required now, and has the default %s",
				shorten(canonical(*property.Default), maxValue))
		case at == nil && slices.Contains(metaFields, name):
		default:
			w.add(Breaking, at.child(name).String(), RequiredAdded, "the field is required now, without a default")
		}
	}
	for _, name := range missing(was.Required, is.Required) {
		if _, has := is.Properties[name]; has || is.AdditionalProperties != nil {
			w.add(Info, at.child(name).String(), RequiredRemoved, "the field may be missing now")
		}
	}
}

// names returns the names of the properties of both schemas, sorted.
func names(was, is map[string]apiextensionsv1.JSONSchemaProps) []string {
	all := make([]string, 0, max(len(was), len(is)))
	for name := range was {
		all = append(all, name)
	}
	for name := range is {
		if _, both := was[name]; !both {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
