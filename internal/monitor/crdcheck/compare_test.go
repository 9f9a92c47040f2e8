package crdcheck

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// said returns the findings as lines without their messages.
func said(found []Finding) []string {
	var lines []string
	for _, f := range found {
		lines = append(lines, strings.Join(slices.DeleteFunc([]string{string(f.Severity), f.Version, f.Path, string(f.Code)},
			func(part string) bool { return part == "" }), " "))
	}
	return lines
}

func TestCompareFields(t *testing.T) { //nolint:funlen // a table
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing": {"{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string}}}", nil},
		"only what people read": {
			"{type: object, description: a, properties: {a: {type: string, description: x, title: t, example: 1}}}",
			"{type: object, properties: {a: {type: string, description: y, externalDocs: {url: u}}}}", nil,
		},
		"what people read within alternatives": {
			"{type: object, anyOf: [{required: [a, b], description: x}], properties: {a: {type: string}}}",
			"{type: object, anyOf: [{required: [b, a], description: y}], properties: {a: {type: string}}}", nil,
		},
		"a field comes": {"{type: object}", "{type: object, properties: {a: {type: string}}}", []string{"Info v1 .spec.a FieldAdded"}},
		"a field goes":  {"{type: object, properties: {a: {type: string}}}", "{type: object}", []string{"Breaking v1 .spec.a FieldRemoved"}},
		"a field goes, and unknown ones are kept": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}",
			"{type: object, x-kubernetes-preserve-unknown-fields: true}",
			[]string{"Risky v1 .spec.a FieldUnchecked"},
		},
		"a field of an item goes, and the list keeps unknown ones": {
			"{type: object, properties: {l: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {a: {type: string}}}}}}",
			"{type: object, properties: {l: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object}}}}",
			[]string{"Risky v1 .spec.l[*].a FieldUnchecked"},
		},
		"a kept field is checked": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true}",
			"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}",
			[]string{"Breaking v1 .spec.a FieldChecked"},
		},
		"unknown fields are not kept": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}",
			[]string{"Breaking v1 .spec PreserveUnknownRemoved"},
		},
		"fields become a map": {
			"{type: object, properties: {a: {type: string}}}", "{type: object, additionalProperties: {type: string, maxLength: 3}}",
			[]string{"Breaking v1 .spec.a BoundTightened", "Info v1 .spec.* ValuesAdded"},
		},
		"a map becomes fields": {
			"{type: object, additionalProperties: {type: string}}", "{type: object, properties: {a: {type: integer}}}",
			[]string{"Breaking v1 .spec.* ValuesRemoved", "Breaking v1 .spec.a TypeChanged"},
		},
		"the values of a map are checked": {
			"{type: object, additionalProperties: true}", "{type: object, additionalProperties: {type: string}}",
			[]string{"Breaking v1 .spec.* ValuesRestricted"},
		},
		"the values of a map change": {
			"{type: object, additionalProperties: {type: integer}}", "{type: object, additionalProperties: {type: string}}",
			[]string{"Breaking v1 .spec.* TypeChanged"},
		},
		"another type, with nothing said below it": {
			"{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}", "{type: object, properties: {a: {type: string}}}",
			[]string{"Breaking v1 .spec.a TypeChanged"},
		},
		"wider types": {
			"{type: object, properties: {a: {type: integer}, b: {type: string}}}",
			"{type: object, properties: {a: {type: number}, b: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}}",
			[]string{"Risky v1 .spec.a TypeWidened", "Risky v1 .spec.b TypeWidened"},
		},
		"narrower types": {
			"{type: object, properties: {a: {type: number}, b: {x-kubernetes-int-or-string: true}}}",
			"{type: object, properties: {a: {type: integer}, b: {type: string}}}",
			[]string{"Breaking v1 .spec.a TypeChanged", "Breaking v1 .spec.b TypeChanged"},
		},
		"required": {
			"{type: object, required: [c], properties: {a: {type: string}, b: {type: string, default: x}, c: {type: string}}}",
			"{type: object, required: [a, b], properties: {a: {type: string}, b: {type: string, default: x}, c: {type: string}}}",
			[]string{"Breaking v1 .spec.a RequiredAdded", "Info v1 .spec.b RequiredAdded", "Info v1 .spec.c RequiredRemoved"},
		},
		"enums": {
			"{type: object, properties: {a: {type: string, enum: [x, y]}, b: {type: string}, c: {type: string, enum: [x]}, d: {type: string, enum: [y, x]}}}",
			"{type: object, properties: {a: {type: string, enum: [y, z]}, b: {type: string, enum: [x]}, c: {type: string}, d: {type: string, enum: [x, y]}}}",
			[]string{
				"Breaking v1 .spec.a EnumRestricted", "Breaking v1 .spec.b EnumAdded", "Info v1 .spec.a EnumExtended",
				"Info v1 .spec.c EnumRemoved",
			},
		},
		"patterns and formats": {
			"{type: object, properties: {a: {type: string}, b: {type: string, pattern: x}, c: {type: string, pattern: x}, d: {type: string}, e: {type: string, format: own}, f: {type: integer, format: int64}}}",
			"{type: object, properties: {a: {type: string, pattern: x}, b: {type: string, pattern: y}, c: {type: string}, d: {type: string, format: date-time}, e: {type: string}, f: {type: integer, format: int32}}}",
			[]string{
				"Breaking v1 .spec.a PatternAdded", "Breaking v1 .spec.d FormatAdded", "Breaking v1 .spec.f FormatAdded",
				"Risky v1 .spec.b PatternChanged", "Info v1 .spec.c PatternRemoved",
			},
		},
		"bounds": {
			"{type: object, properties: {a: {type: string, maxLength: 5, minLength: 0}, b: {type: array, items: {type: string}, minItems: 1}, c: {type: integer, maximum: 5}, d: {type: number, multipleOf: 4}, e: {type: integer, minimum: 1, exclusiveMinimum: true}}}",
			"{type: object, properties: {a: {type: string, maxLength: 4}, b: {type: array, items: {type: string}, minItems: 2, maxItems: 3}, c: {type: integer, maximum: 5, exclusiveMaximum: true}, d: {type: number, multipleOf: 2}, e: {type: integer, minimum: 1}}}",
			[]string{
				"Breaking v1 .spec.a BoundTightened", "Breaking v1 .spec.b BoundTightened", "Breaking v1 .spec.b BoundTightened",
				"Breaking v1 .spec.c BoundTightened", "Info v1 .spec.d BoundRelaxed", "Info v1 .spec.e BoundRelaxed",
			},
		},
		"properties counted": {
			"{type: object, maxProperties: 3}", "{type: object, minProperties: 2}",
			[]string{"Breaking v1 .spec BoundTightened", "Info v1 .spec BoundRelaxed"},
		},
		"null": {
			"{type: object, properties: {a: {type: string, nullable: true}, b: {type: string}}}",
			"{type: object, properties: {a: {type: string}, b: {type: string, nullable: true}}}",
			[]string{"Breaking v1 .spec.a NullableRemoved", "Info v1 .spec.b NullableAdded"},
		},
		"defaults": {
			"{type: object, properties: {a: {type: string}, b: {type: string, default: x}, c: {type: string, default: x}, d: {type: object, default: {a: 1, b: 2}}}}",
			"{type: object, properties: {a: {type: string, default: x}, b: {type: string, default: y}, c: {type: string}, d: {type: object, default: {b: 2, a: 1}}}}",
			[]string{"Risky v1 .spec.a DefaultAdded", "Risky v1 .spec.b DefaultChanged", "Risky v1 .spec.c DefaultRemoved"},
		},
		"lists and maps": {
			"{type: object, properties: {a: {type: array, items: {type: string}}, b: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n], items: {type: object}}, c: {type: array, x-kubernetes-list-type: set, items: {type: string}}, d: {type: object, x-kubernetes-map-type: atomic}}}",
			"{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: string}}, b: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [m], items: {type: object}}, c: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}, d: {type: object}}}",
			[]string{
				"Breaking v1 .spec.a DuplicatesRefused", "Breaking v1 .spec.b DuplicatesRefused", "Risky v1 .spec.a ListTypeChanged",
				"Risky v1 .spec.b ListTypeChanged", "Risky v1 .spec.c ListTypeChanged", "Risky v1 .spec.d MapTypeChanged",
			},
		},
		"embedded objects": {
			"{type: object, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true}, b: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
			"{type: object, properties: {b: {type: object, x-kubernetes-preserve-unknown-fields: true}, a: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}",
			[]string{"Breaking v1 .spec.a EmbeddedAdded", "Risky v1 .spec.b EmbeddedRemoved"},
		},
		"alternatives": {
			"{type: object, properties: {a: {type: string}, b: {type: string, anyOf: [{pattern: x}, {pattern: y}]}, c: {type: string, allOf: [{pattern: x}]}, d: {type: string, oneOf: [{pattern: x}]}, e: {type: string, not: {pattern: x}}, f: {type: string, anyOf: [{pattern: x}]}}}",
			"{type: object, properties: {a: {type: string, not: {pattern: x}}, b: {type: string, anyOf: [{pattern: y}]}, c: {type: string}, d: {type: string, oneOf: [{pattern: x}, {pattern: y}]}, e: {type: string, not: {pattern: y}}, f: {type: string, anyOf: [{pattern: x}, {pattern: y}]}}}",
			[]string{
				"Breaking v1 .spec.a JunctorAdded", "Breaking v1 .spec.b JunctorAdded", "Risky v1 .spec.d JunctorChanged",
				"Risky v1 .spec.e JunctorChanged", "Info v1 .spec.c JunctorRemoved", "Info v1 .spec.f JunctorRemoved",
			},
		},
		"rules": {
			"{type: object, x-kubernetes-validations: [{rule: 'true', message: a}], properties: {a: {type: string}, b: {type: string}, c: {type: string, x-kubernetes-validations: [{rule: self != 'a'}]}, d: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}",
			"{type: object, x-kubernetes-validations: [{rule: 'true', message: b}, {rule: self.a != self.b}], properties: {a: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}, b: {type: string, x-kubernetes-validations: [{rule: self >= oldSelf}]}, c: {type: string, x-kubernetes-validations: [{rule: self != 'b'}]}, d: {type: string}}}",
			[]string{
				"Breaking v1 .spec RuleAdded", "Breaking v1 .spec.a ImmutabilityAdded", "Breaking v1 .spec.b TransitionRuleAdded",
				"Risky v1 .spec.c RuleChanged", "Info v1 .spec.d ImmutabilityRemoved",
			},
		},
		"in items, values and odd names": {
			"{type: object, properties: {'a.b': {type: array, items: {type: object, additionalProperties: {type: string}}}}}",
			"{type: object, properties: {'a.b': {type: array, items: {type: object, additionalProperties: {type: string, maxLength: 1}}}}}",
			[]string{`Breaking v1 .spec["a.b"][*].* BoundTightened`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := definition(specSchema(t, test.before)), definition(specSchema(t, test.after))
			if diff := cmp.Diff(test.want, said(Compare(before, after))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if again := Compare(before.DeepCopy(), before); len(again) > 0 {
				t.Errorf("the same definition differs: %+v", again)
			}
		})
	}
}

func TestCompareMessages(t *testing.T) {
	before := specSchema(t, "{type: object, properties: {mode: {type: string, enum: [fast, slow]}, size: {type: integer, maximum: 10}, old: {type: string}}}")
	after := specSchema(t, "{type: object, properties: {mode: {type: string, enum: [fast]}, size: {type: integer, maximum: 5, exclusiveMaximum: true}}}")
	want := []Finding{
		{Breaking, "v1", ".spec.mode", EnumRestricted, `not allowed any more: "slow" (is one of "fast")`},
		{
			Breaking, "v1", ".spec.old", FieldRemoved,
			"the field (string) is gone: its value is removed when an object is read, and for good when it is next written",
		},
		{Breaking, "v1", ".spec.size", BoundTightened, "maximum was 10, is 5 (exclusive)"},
	}
	if diff := cmp.Diff(want, Compare(definition(before), definition(after))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCompareDefinitions(t *testing.T) {
	type change = func(*apiextensionsv1.CustomResourceDefinition)
	version := func(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: served, Storage: storage, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
			},
		}
	}
	versions := func(list ...apiextensionsv1.CustomResourceDefinitionVersion) change {
		return func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = list }
	}
	webhook := func(url string, reviews ...string) change {
		return func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: ptr.To(url), CABundle: []byte(url)}, ConversionReviewVersions: reviews,
				},
			}
		}
	}
	subresources := func(status bool, replicas string) change {
		return func(crd *apiextensionsv1.CustomResourceDefinition) {
			s := &apiextensionsv1.CustomResourceSubresources{}
			if status {
				s.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
			}
			if replicas != "" {
				s.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: replicas, StatusReplicasPath: ".status.replicas"}
			}
			crd.Spec.Versions[0].Subresources = s
		}
	}
	none := func(*apiextensionsv1.CustomResourceDefinition) {}
	for name, test := range map[string]struct {
		before, after change
		want          []string
	}{
		"a version goes": {
			versions(version("v1", true, true), version("v2", true, false), version("v3", false, false)), versions(version("v1", true, true)),
			[]string{"Breaking v2 VersionRemoved", "Info v3 VersionRemoved"},
		},
		"a version comes": {
			versions(version("v1", true, true)), versions(version("v1", true, true), version("v2", true, false)),
			[]string{"Info v2 VersionAdded"},
		},
		"served and stored": {
			versions(version("v1", true, true), version("v2", false, false)), versions(version("v1", false, false), version("v2", true, true)),
			[]string{"Breaking v1 VersionNotServed", "Risky StorageVersionChanged", "Info v2 VersionServed"},
		},
		"a stored version goes": {
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions = append(crd.Spec.Versions, version("v0", false, false))
				crd.Status.StoredVersions = []string{"v0", "v1"}
			}, none,
			[]string{"Breaking StoredVersionGone", "Info v0 VersionRemoved"},
		},
		"the new definition knows what is stored": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.StoredVersions = []string{"v0", "v1"} },
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.StoredVersions = []string{"v1"} }, nil,
		},
		"deprecated": {none, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Deprecated = true }, []string{"Info v1 VersionDeprecated"}},
		"scope": {
			none, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped },
			[]string{"Breaking ScopeChanged"},
		},
		"names": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Categories = []string{"all"} },
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Names.Kind, crd.Spec.Names.ShortNames = "Gadget", []string{"ga"}
			},
			[]string{"Breaking NamesChanged", "Breaking NamesChanged", "Risky NamesChanged", "Risky NamesChanged", "Risky NamesChanged"},
		},
		"names spelled out": {none, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Names.Singular, crd.Spec.Names.ListKind = "widget", "WidgetList"
		}, nil},
		"a webhook comes": {none, webhook("https://a"), []string{"Risky ConversionChanged"}},
		"a webhook goes":  {webhook("https://a"), none, []string{"Risky ConversionWebhookRemoved"}},
		"a webhook moves": {webhook("https://a", "v1", "v2"), webhook("https://b", "v1"), []string{"Risky ConversionChanged", "Risky ConversionChanged"}},
		"a certificate of a webhook is new": {webhook("https://a"), func(crd *apiextensionsv1.CustomResourceDefinition) {
			webhook("https://a")(crd)
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
		}, nil},
		"a webhook goes with several versions": {
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				webhook("https://a")(crd)
				crd.Spec.Versions = append(crd.Spec.Versions, version("v2", true, false))
			},
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions = append(crd.Spec.Versions, version("v2", true, false))
			},
			[]string{"Breaking ConversionWebhookRemoved"},
		},
		"subresources come": {none, subresources(true, ".spec.replicas"), []string{"Breaking v1 SubresourceAdded", "Risky v1 SubresourceAdded"}},
		"subresources go":   {subresources(true, ".spec.replicas"), none, []string{"Breaking v1 SubresourceRemoved", "Breaking v1 SubresourceRemoved"}},
		"scale moves":       {subresources(false, ".spec.replicas"), subresources(false, ".spec.size"), []string{"Risky v1 SubresourceChanged"}},
		"pruning": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.PreserveUnknownFields = true }, none,
			[]string{"Breaking PruningChanged"},
		},
		"fields go, and the definition keeps them": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.PreserveUnknownFields = true },
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.PreserveUnknownFields = true
				crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object"}
			},
			[]string{"Risky v1 .spec FieldUnchecked", "Risky v1 .status FieldUnchecked"},
		},
		"selectable fields": {
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.a"}}
			},
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.b"}}
			},
			[]string{"Breaking v1 SelectableFieldRemoved", "Info v1 SelectableFieldAdded"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := definition(specSchema(t, "{type: object}"), test.before), definition(specSchema(t, "{type: object}"), test.after)
			if diff := cmp.Diff(test.want, said(Compare(before, after))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	crd := definition(specSchema(t, "{type: object}"))
	if found := Compare(nil, crd); len(found) > 0 {
		t.Errorf("a new definition: %+v", found)
	}
	if diff := cmp.Diff([]string{"Breaking DefinitionRemoved"}, said(Compare(crd, nil))); diff != "" {
		t.Errorf("a definition goes (-want +got):\n%s", diff)
	}
}
