package crdcheck

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity is how much a finding matters.
type Severity string

const (
	// Breaking is a change by which something that was accepted can be refused, or by which data is lost.
	Breaking Severity = "Breaking"
	// Risky is a change by which the same write has another outcome, or a constraint that became another one, so that
	// nobody can tell from the text which values it refuses now.
	Risky Severity = "Risky"
	// Info is a change that accepts everything that was accepted.
	Info Severity = "Info"
)

func (s Severity) rank() int { return slices.Index([]Severity{Breaking, Risky, Info}, s) }

// Code names what changed. Each code has one meaning, so a program may act on it.
type Code string

// Codes of the definition as a whole.
const (
	// DefinitionRemoved is a definition that is gone, and with it all its objects.
	DefinitionRemoved Code = "DefinitionRemoved"
	// DefinitionRefused is a definition that the API server does not accept.
	DefinitionRefused Code = "DefinitionRefused"
	// ScopeChanged is Namespaced that became Cluster or the other way. It needs a new definition: all objects are lost.
	ScopeChanged Code = "ScopeChanged"
	// NamesChanged is another kind, plural, singular or list kind, or a short name or category that is gone.
	NamesChanged Code = "NamesChanged"
	// ConversionChanged is another way to convert between versions, or another webhook.
	ConversionChanged Code = "ConversionChanged"
	// ConversionWebhookRemoved is a webhook that is not called any more: objects change only their apiVersion.
	ConversionWebhookRemoved Code = "ConversionWebhookRemoved"
	// PruningChanged is spec.preserveUnknownFields, which keeps fields that no schema knows.
	PruningChanged Code = "PruningChanged"
	// StorageVersionChanged is another version in which objects are stored. Those that exist change when they are written.
	StorageVersionChanged Code = "StorageVersionChanged"
	// StoredVersionGone is a version that is gone while objects may be stored in it (status.storedVersions).
	StoredVersionGone Code = "StoredVersionGone"
	// TooLarge is a definition, or a list of findings, that is longer than is compared.
	TooLarge Code = "TooLarge"
)

// Codes of a version.
const (
	// VersionAdded is a new version.
	VersionAdded Code = "VersionAdded"
	// VersionRemoved is a version that is gone.
	VersionRemoved Code = "VersionRemoved"
	// VersionNotServed is a version that is not served any more, VersionServed one that is served now.
	VersionNotServed Code = "VersionNotServed"
	VersionServed    Code = "VersionServed"
	// VersionDeprecated is a version for whose use clients are warned now.
	VersionDeprecated Code = "VersionDeprecated"
	// SubresourceAdded and SubresourceRemoved are status and scale. With status, the status is written only through it.
	SubresourceAdded   Code = "SubresourceAdded"
	SubresourceRemoved Code = "SubresourceRemoved"
	// SubresourceChanged is scale with other paths.
	SubresourceChanged Code = "SubresourceChanged"
	// SelectableFieldRemoved is a field by which objects cannot be selected any more, SelectableFieldAdded a new one.
	SelectableFieldRemoved Code = "SelectableFieldRemoved"
	SelectableFieldAdded   Code = "SelectableFieldAdded"
)

// Codes of a field.
const (
	// FieldAdded is a new field.
	FieldAdded Code = "FieldAdded"
	// FieldRemoved is a field whose value is removed when an object is read, and for good when it is written.
	FieldRemoved Code = "FieldRemoved"
	// FieldUnchecked is a field that is kept (x-kubernetes-preserve-unknown-fields) and not checked any more.
	FieldUnchecked Code = "FieldUnchecked"
	// FieldChecked is a field that was kept as it was and is checked now.
	FieldChecked Code = "FieldChecked"
	// TypeChanged is another type, TypeWidened one that takes all the old values, too.
	TypeChanged Code = "TypeChanged"
	TypeWidened Code = "TypeWidened"
	// RequiredAdded is a field that has to be there, RequiredRemoved one that may be missing now.
	RequiredAdded   Code = "RequiredAdded"
	RequiredRemoved Code = "RequiredRemoved"
	// EnumAdded and EnumRestricted refuse values that were allowed, EnumExtended and EnumRemoved allow more.
	EnumAdded      Code = "EnumAdded"
	EnumRestricted Code = "EnumRestricted"
	EnumExtended   Code = "EnumExtended"
	EnumRemoved    Code = "EnumRemoved"
	// PatternAdded, PatternChanged and PatternRemoved are about pattern.
	PatternAdded   Code = "PatternAdded"
	PatternChanged Code = "PatternChanged"
	PatternRemoved Code = "PatternRemoved"
	// FormatAdded, FormatChanged and FormatRemoved are about format, as far as the API server checks it.
	FormatAdded   Code = "FormatAdded"
	FormatChanged Code = "FormatChanged"
	FormatRemoved Code = "FormatRemoved"
	// BoundTightened and BoundRelaxed are about minimum, maximum, the same of lengths, items and properties, and multipleOf.
	BoundTightened Code = "BoundTightened"
	BoundRelaxed   Code = "BoundRelaxed"
	// NullableRemoved is a field that may not be null any more, NullableAdded one that may be now.
	NullableRemoved Code = "NullableRemoved"
	NullableAdded   Code = "NullableAdded"
	// ValuesRemoved is a map without fixed keys whose values are removed now, ValuesRestricted one whose values are checked
	// now, ValuesAdded one that takes more.
	ValuesRemoved    Code = "ValuesRemoved"
	ValuesRestricted Code = "ValuesRestricted"
	ValuesAdded      Code = "ValuesAdded"
	// UniqueItemsAdded and UniqueItemsRemoved are about uniqueItems.
	UniqueItemsAdded   Code = "UniqueItemsAdded"
	UniqueItemsRemoved Code = "UniqueItemsRemoved"
	// JunctorAdded, JunctorChanged and JunctorRemoved are about allOf, anyOf, oneOf and not.
	JunctorAdded   Code = "JunctorAdded"
	JunctorChanged Code = "JunctorChanged"
	JunctorRemoved Code = "JunctorRemoved"
	// DefaultAdded, DefaultChanged and DefaultRemoved are about the value of a field that is not set. It appears when an
	// object is read, so objects change that nobody wrote.
	DefaultAdded   Code = "DefaultAdded"
	DefaultChanged Code = "DefaultChanged"
	DefaultRemoved Code = "DefaultRemoved"
	// ListTypeChanged is another x-kubernetes-list-type or other keys, MapTypeChanged another x-kubernetes-map-type: the
	// writes of two managers are merged in another way.
	ListTypeChanged Code = "ListTypeChanged"
	MapTypeChanged  Code = "MapTypeChanged"
	// DuplicatesRefused is a list whose items, or their keys, must differ now.
	DuplicatesRefused Code = "DuplicatesRefused"
	// PreserveUnknownRemoved is a field below which unknown fields are removed now, PreserveUnknownAdded where they are kept.
	PreserveUnknownRemoved Code = "PreserveUnknownRemoved"
	PreserveUnknownAdded   Code = "PreserveUnknownAdded"
	// EmbeddedAdded is a field that has to be an object with apiVersion and kind, EmbeddedRemoved one that has not.
	EmbeddedAdded   Code = "EmbeddedAdded"
	EmbeddedRemoved Code = "EmbeddedRemoved"
	// RuleAdded, RuleChanged and RuleRemoved are about x-kubernetes-validations.
	RuleAdded   Code = "RuleAdded"
	RuleChanged Code = "RuleChanged"
	RuleRemoved Code = "RuleRemoved"
	// TransitionRuleAdded is a rule with oldSelf: it refuses some changes. ImmutabilityAdded is one that refuses all.
	TransitionRuleAdded Code = "TransitionRuleAdded"
	ImmutabilityAdded   Code = "ImmutabilityAdded"
	ImmutabilityRemoved Code = "ImmutabilityRemoved"
)

// Finding is one thing that changed.
type Finding struct {
	// Severity is how much it matters.
	Severity Severity `json:"severity"`
	// Version is the version of the definition that it is about, empty for the definition as a whole.
	Version string `json:"version,omitempty"`
	// Path leads to the field, such as .spec.hosts[*].name, or .spec.labels.* for the values of a map. It is empty for a
	// version as a whole, and a single dot for the root of its schema.
	Path string `json:"path,omitempty"`
	// Code names what changed.
	Code Code `json:"code"`
	// Message is a sentence for people, with the values before and after. It is at most 400 characters long.
	Message string `json:"message"`
}

// maxFindings is how many findings are kept.
const maxFindings = 10_000

// findings collects them.
type findings struct {
	version string
	list    []Finding
	more    bool
}

func (f *findings) add(severity Severity, at string, code Code, format string, args ...any) {
	if len(f.list) >= maxFindings {
		f.more = true
		return
	}
	message := shorten(fmt.Sprintf(format, args...), maxMessage)
	f.list = append(f.list, Finding{Severity: severity, Version: f.version, Path: at, Code: code, Message: message})
}

// sorted returns the findings, those that matter most first.
func (f *findings) sorted() []Finding {
	if f.more {
		f.more, f.version = false, ""
		f.list = append(f.list, Finding{
			Severity: Risky, Code: TooLarge, Message: fmt.Sprintf("there are more than %d findings: the rest is left out", maxFindings),
		})
	}
	slices.SortStableFunc(f.list, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message),
		)
	})
	return f.list
}
