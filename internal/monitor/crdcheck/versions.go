package crdcheck

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

func compareVersions(f *findings, before, after *apiextensionsv1.CustomResourceDefinition) {
	defer func() { f.version = "" }()
	for i := range before.Spec.Versions {
		was := &before.Spec.Versions[i]
		f.version = was.Name
		is := versionOf(after, was.Name)
		if is != nil {
			compareVersion(f, was, is, before.Spec.PreserveUnknownFields, after.Spec.PreserveUnknownFields)
			continue
		}
		severity := Info
		if was.Served {
			severity = Breaking
		}
		f.add(severity, "", VersionRemoved, "version %s is gone (served: %t)", was.Name, was.Served)
	}
	for i := range after.Spec.Versions {
		is := &after.Spec.Versions[i]
		f.version = is.Name
		if versionOf(before, is.Name) == nil {
			f.add(Info, "", VersionAdded, "version %s is new (served: %t)", is.Name, is.Served)
		}
	}
}

func compareVersion(f *findings, was, is *apiextensionsv1.CustomResourceDefinitionVersion, kept, keeps bool) {
	switch {
	case was.Served && !is.Served:
		f.add(Breaking, "", VersionNotServed, "version %s is not served any more", is.Name)
	case !was.Served && is.Served:
		f.add(Info, "", VersionServed, "version %s is served now", is.Name)
	}
	if !was.Deprecated && is.Deprecated {
		f.add(Info, "", VersionDeprecated, "version %s is deprecated now: %s", is.Name, show(ptr.Deref(is.DeprecationWarning, "")))
	}
	compareSubresources(f, subresourcesOf(was), subresourcesOf(is))
	compareSelectable(f, was.SelectableFields, is.SelectableFields)

	before, after := schemaOf(was), schemaOf(is)
	for _, schema := range []*apiextensionsv1.JSONSchemaProps{before, after} {
		if err := schemaTooLarge(schema); err != nil {
			f.add(Risky, "", TooLarge, "the schemas are not compared: %v", err)
			return
		}
	}
	w := &walk{findings: f, kept: kept, keeps: keeps}
	w.compare(nil, before, after, false, false)
}

func subresourcesOf(version *apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.CustomResourceSubresources {
	return ptr.Deref(version.Subresources, apiextensionsv1.CustomResourceSubresources{})
}

// schemaOf returns the schema of a version. One without a schema is as one that says nothing.
func schemaOf(version *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return &apiextensionsv1.JSONSchemaProps{}
	}
	return version.Schema.OpenAPIV3Schema
}

func compareSubresources(f *findings, was, is apiextensionsv1.CustomResourceSubresources) {
	switch {
	case was.Status != nil && is.Status == nil:
		f.add(Breaking, "", SubresourceRemoved, "the subresource status is gone: controllers that write to it fail")
	case was.Status == nil && is.Status != nil:
		f.add(Breaking, "", SubresourceAdded,
			"the subresource status is new: a status in any other write is ignored, and controllers that do not write to it have no effect")
	}
	switch {
	case was.Scale != nil && is.Scale == nil:
		f.add(Breaking, "", SubresourceRemoved, "the subresource scale is gone: autoscalers and kubectl scale fail")
	case was.Scale == nil && is.Scale != nil:
		f.add(Risky, "", SubresourceAdded, "the subresource scale is new: %s has to be a number that is not negative",
			show(is.Scale.SpecReplicasPath))
	case was.Scale != nil && is.Scale != nil:
		if before, after := scaleText(was.Scale), scaleText(is.Scale); before != after {
			f.add(Risky, "", SubresourceChanged, "the subresource scale was at %s, is at %s", show(before), show(after))
		}
	}
}

func scaleText(scale *apiextensionsv1.CustomResourceSubresourceScale) string {
	return scale.SpecReplicasPath + " " + scale.StatusReplicasPath + " " + ptr.Deref(scale.LabelSelectorPath, "")
}

func compareSelectable(f *findings, was, is []apiextensionsv1.SelectableField) {
	before, after := selectablePaths(was), selectablePaths(is)
	for _, gone := range missing(before, after) {
		f.add(Breaking, "", SelectableFieldRemoved, "objects cannot be selected by %s any more", show(gone))
	}
	for _, added := range missing(after, before) {
		f.add(Info, "", SelectableFieldAdded, "objects can be selected by %s now", show(added))
	}
}

func selectablePaths(fields []apiextensionsv1.SelectableField) []string {
	paths := make([]string, 0, len(fields))
	for _, field := range fields {
		paths = append(paths, field.JSONPath)
	}
	return paths
}
