package crdcheck

import (
	"cmp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Compare returns what changed between two states of a definition, what matters most first. Equal inputs give equal findings.
// Descriptions, titles, examples and printer columns are not compared. before is nil for a definition that is new: there is
// nothing to break. after is nil for one that is gone.
//
// It says what can break. Whether an object that exists is hit, a Checker says.
func Compare(before, after *apiextensionsv1.CustomResourceDefinition) []Finding {
	f := &findings{}
	switch {
	case before == nil:
	case after == nil:
		f.add(Breaking, "", DefinitionRemoved, "the definition is gone, and all its objects with it")
	default:
		compareScope(f, before, after)
		compareNames(f, before.Spec.Names, after.Spec.Names)
		compareConversion(f, before, after)
		comparePruning(f, before, after)
		compareStorage(f, before, after)
		compareVersions(f, before, after)
	}
	return f.sorted()
}

func compareScope(f *findings, before, after *apiextensionsv1.CustomResourceDefinition) {
	if was, is := before.Spec.Scope, after.Spec.Scope; was != is {
		f.add(Breaking, "", ScopeChanged,
			"the scope was %s, is %s: it cannot be changed, only by deleting the definition with all its objects", was, is)
	}
	if was, is := before.Spec.Group, after.Spec.Group; was != is {
		f.add(Breaking, "", NamesChanged, "the group was %s, is %s: it is another definition", show(was), show(is))
	}
}

func compareNames(f *findings, before, after apiextensionsv1.CustomResourceDefinitionNames) {
	for _, name := range []struct {
		what, was, is string
		severity      Severity
	}{
		{"kind", before.Kind, after.Kind, Breaking},
		{"plural name", before.Plural, after.Plural, Breaking},
		{"list kind", defaulted(before.ListKind, before.Kind+"List"), defaulted(after.ListKind, after.Kind+"List"), Breaking},
		{
			"singular name", defaulted(before.Singular, strings.ToLower(before.Kind)),
			defaulted(after.Singular, strings.ToLower(after.Kind)), Risky,
		},
	} {
		if name.was != name.is {
			f.add(name.severity, "", NamesChanged, "the %s was %s, is %s", name.what, show(name.was), show(name.is))
		}
	}
	for _, gone := range missing(before.ShortNames, after.ShortNames) {
		f.add(Risky, "", NamesChanged, "the short name %s is gone", show(gone))
	}
	for _, gone := range missing(before.Categories, after.Categories) {
		f.add(Risky, "", NamesChanged, "the category %s is gone", show(gone))
	}
}

func compareConversion(f *findings, before, after *apiextensionsv1.CustomResourceDefinition) {
	was, is := webhookOf(before), webhookOf(after)
	several := len(before.Spec.Versions) > 1 || len(after.Spec.Versions) > 1
	switch {
	case was != nil && is == nil:
		severity := Risky
		if several {
			severity = Breaking
		}
		f.add(severity, "", ConversionWebhookRemoved,
			"the conversion was Webhook, is None: objects of other versions keep their fields as they are, and unknown ones are removed")
	case was == nil && is != nil:
		f.add(Risky, "", ConversionChanged, "the conversion was None, is Webhook: no object can be read while the webhook fails")
	case was != nil && is != nil:
		compareWebhooks(f, was, is)
	}
}

func compareWebhooks(f *findings, was, is *apiextensionsv1.WebhookConversion) {
	if before, after := webhookAddress(was), webhookAddress(is); before != after {
		f.add(Risky, "", ConversionChanged, "the conversion webhook was at %s, is at %s", show(before), show(after))
	}
	for _, gone := range missing(was.ConversionReviewVersions, is.ConversionReviewVersions) {
		f.add(Risky, "", ConversionChanged, "the conversion webhook is not asked with ConversionReview %s any more", show(gone))
	}
}

// webhookOf returns the webhook that converts, nil when there is none.
func webhookOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookConversion {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter {
		return nil
	}
	if conversion.Webhook == nil {
		return &apiextensionsv1.WebhookConversion{}
	}
	return conversion.Webhook
}

// webhookAddress says where a webhook is. Its certificate is left out: it is rotated without a change of the definition's meaning.
func webhookAddress(webhook *apiextensionsv1.WebhookConversion) string {
	config := webhook.ClientConfig
	switch {
	case config == nil:
		return ""
	case config.URL != nil:
		return *config.URL
	case config.Service != nil:
		address := "service " + config.Service.Namespace + "/" + config.Service.Name
		if config.Service.Path != nil {
			address += " " + *config.Service.Path
		}
		return address
	default:
		return ""
	}
}

func comparePruning(f *findings, before, after *apiextensionsv1.CustomResourceDefinition) {
	switch was, is := before.Spec.PreserveUnknownFields, after.Spec.PreserveUnknownFields; {
	case was && !is:
		f.add(Breaking, "", PruningChanged, "spec.preserveUnknownFields was true, is false: fields that no schema knows are removed")
	case !was && is:
		f.add(Info, "", PruningChanged, "spec.preserveUnknownFields was false, is true: fields that no schema knows are kept")
	}
}

func compareStorage(f *findings, before, after *apiextensionsv1.CustomResourceDefinition) {
	was, is := storageVersion(before), storageVersion(after)
	if was != is {
		f.add(Risky, "", StorageVersionChanged,
			"the storage version was %s, is %s: objects that exist are stored in it when they are next written", was, is)
	}
	stored := before.Status.StoredVersions
	if len(after.Status.StoredVersions) > 0 {
		stored = after.Status.StoredVersions
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(stored))) {
		if versionOf(after, name) == nil {
			f.add(Breaking, "", StoredVersionGone,
				"version %s is gone, and status.storedVersions has it: objects that are stored in it could not be read", name)
		}
	}
}

func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return crd.Spec.Versions[i].Name
		}
	}
	return ""
}

// versionOf returns a version of a definition, nil if there is none of this name.
func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

func defaulted(value, otherwise string) string { return cmp.Or(value, otherwise) }

// missing returns the values of was that is lacks, sorted and each once.
func missing(was, is []string) []string {
	has := make(map[string]bool, len(is))
	for _, value := range is {
		has[value] = true
	}
	var gone []string
	for _, value := range was {
		if !has[value] {
			gone = append(gone, value)
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}
