package crdcheck

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// compareMapValues compares the schemas of the values of a map without fixed keys.
func (w *walk) compareMapValues(at *path, was, is *apiextensionsv1.JSONSchemaProps, keeps bool) {
	before, took := valuesOf(was)
	after, takes := valuesOf(is)
	values := at.values()
	switch {
	case before != nil && after != nil:
		w.compare(values, before, after, false, false)
	case took && !takes && keeps:
		w.add(Risky, values.String(), FieldUnchecked, "the values of the map are kept and not checked any more")
	case took && !takes:
		w.add(Breaking, values.String(), ValuesRemoved,
			"keys without a schema of their own are removed when an object is read, and for good when it is next written")
	case took && after != nil:
		w.add(Breaking, values.String(), ValuesRestricted, "the values were anything, are %s", typeText(after))
	case took && before != nil:
		w.add(
			Breaking, values.String(), ValuesRestricted, "the values were %s, are anything: fields below them are removed",
			typeText(before),
		)
	case !took && after != nil && preserves(was):
		w.add(Breaking, values.String(), ValuesRestricted, "the values were kept as they were, are %s", typeText(after))
	case !took && takes:
		w.add(Info, values.String(), ValuesAdded, "keys without a schema of their own are allowed now")
	}
}

// compareMerging compares how the writes of two managers are merged.
func (w *walk) compareMerging(at *path, was, is *apiextensionsv1.JSONSchemaProps) {
	before, after := listText(was), listText(is)
	if before != after && typeText(was) == typeText(is) {
		w.add(
			Risky, at.String(), ListTypeChanged, "the list was %s, is %s: writes of several managers are merged in another way", before,
			after,
		)
		if ptr.Deref(is.XListType, "atomic") != "atomic" {
			w.add(Breaking, at.String(), DuplicatesRefused, "the list is %s now: %s", after, duplicatesText(is))
		}
	}
	before, after = ptr.Deref(was.XMapType, "granular"), ptr.Deref(is.XMapType, "granular")
	if before != after {
		w.add(
			Risky, at.String(), MapTypeChanged, "the map was %s, is %s: writes of several managers are merged in another way", before,
			after,
		)
	}
	switch {
	case is.XEmbeddedResource && !was.XEmbeddedResource:
		w.add(Breaking, at.String(), EmbeddedAdded, "the field has to be an object with apiVersion and kind now")
	case was.XEmbeddedResource && !is.XEmbeddedResource:
		w.add(Risky, at.String(), EmbeddedRemoved,
			"the field is no embedded object any more: apiVersion, kind and metadata are not checked, and are removed where the "+
				"schema lacks them")
	}
}

func listText(s *apiextensionsv1.JSONSchemaProps) string {
	kind := ptr.Deref(s.XListType, "atomic")
	if kind == "map" {
		return "map by " + shorten(strings.Join(s.XListMapKeys, ", "), maxValue)
	}
	return kind
}

func duplicatesText(s *apiextensionsv1.JSONSchemaProps) string {
	if ptr.Deref(s.XListType, "") == "map" {
		return "two items with the same keys are refused"
	}
	return "two equal items are refused"
}

func (w *walk) compareDefaults(at *path, was, is *apiextensionsv1.JSONSchemaProps) {
	switch {
	case was.Default == nil && is.Default == nil:
	case was.Default == nil:
		w.add(Risky, at.String(), DefaultAdded, "objects without the field have it when they are read: %s",
			shorten(canonical(*is.Default), maxValue))
	case is.Default == nil:
		w.add(Risky, at.String(), DefaultRemoved, "the field is not set to %s any more", shorten(canonical(*was.Default), maxValue))
	default:
		if before, after := canonical(*was.Default), canonical(*is.Default); before != after {
			w.add(Risky, at.String(), DefaultChanged, "the default was %s, is %s", shorten(before, maxValue), shorten(after, maxValue))
		}
	}
}

func (w *walk) comparePreserving(at *path, was, is *apiextensionsv1.JSONSchemaProps) {
	switch before, after := preserves(was), preserves(is); {
	case before && !after:
		w.add(Breaking, at.String(), PreserveUnknownRemoved,
			"fields that the schema does not know were kept, and are removed when an object is read, and for good when it is next written")
	case !before && after:
		w.add(Info, at.String(), PreserveUnknownAdded, "fields that the schema does not know are kept now")
	}
}
