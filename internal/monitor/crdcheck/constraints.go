package crdcheck

import (
	"fmt"
	"math"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	typeInteger     = "integer"
	typeNumber      = "number"
	typeString      = "string"
	typeIntOrString = "int-or-string"
	typeAny         = "anything"
)

// typeText names the type of a field.
func typeText(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return typeIntOrString
	case s.Type == "":
		return typeAny
	default:
		return shorten(s.Type, maxValue)
	}
}

// compareTypes compares the types. It returns false when they have no value in common, so that there is nothing more to compare.
func (w *walk) compareTypes(at *path, was, is *apiextensionsv1.JSONSchemaProps) bool {
	before, after := typeText(was), typeText(is)
	switch {
	case before == after:
	case widens(before, after):
		w.add(Risky, at.String(), TypeWidened, "the type was %s, is %s: clients may meet values of another type", before, after)
	default:
		w.add(Breaking, at.String(), TypeChanged, "the type was %s, is %s", before, after)
	}
	switch {
	case was.Nullable && !is.Nullable:
		w.add(Breaking, at.String(), NullableRemoved, "the field may not be null any more: a null is removed or refused")
	case !was.Nullable && is.Nullable:
		w.add(Info, at.String(), NullableAdded, "the field may be null now")
	}
	return before == after || widens(before, after) || widens(after, before)
}

// widens reports whether every value of one type is one of the other, too.
func widens(before, after string) bool {
	switch after {
	case typeAny:
		return true
	case typeNumber:
		return before == typeInteger
	case typeIntOrString:
		return before == typeInteger || before == typeString
	default:
		return false
	}
}

func (w *walk) compareValues(at *path, was, is *apiextensionsv1.JSONSchemaProps) {
	w.compareEnums(at, was.Enum, is.Enum)
	switch {
	case was.Pattern == is.Pattern:
	case was.Pattern == "":
		w.add(Breaking, at.String(), PatternAdded, "the value has to match %s now", show(is.Pattern))
	case is.Pattern == "":
		w.add(Info, at.String(), PatternRemoved, "the value need not match %s any more", show(was.Pattern))
	default:
		w.add(Risky, at.String(), PatternChanged, "the pattern was %s, is %s", show(was.Pattern), show(is.Pattern))
	}
	w.compareFormats(at, was, is)
	switch {
	case is.UniqueItems && !was.UniqueItems:
		w.add(Breaking, at.String(), UniqueItemsAdded, "two equal items are refused now (uniqueItems)")
	case was.UniqueItems && !is.UniqueItems:
		w.add(Info, at.String(), UniqueItemsRemoved, "two equal items are allowed now (uniqueItems)")
	}
}

func (w *walk) compareEnums(at *path, was, is []apiextensionsv1.JSON) {
	before, after := canonicals(was), canonicals(is)
	gone, added := missing(before, after), missing(after, before)
	switch {
	case len(before) == 0 && len(after) == 0:
	case len(before) == 0:
		w.add(Breaking, at.String(), EnumAdded, "the value was any, has to be one of %s", listed(after))
	case len(after) == 0:
		w.add(Info, at.String(), EnumRemoved, "the value had to be one of %s, may be any", listed(before))
	default:
		if len(gone) > 0 {
			w.add(Breaking, at.String(), EnumRestricted, "not allowed any more: %s (is one of %s)", listed(gone), listed(after))
		}
		if len(added) > 0 {
			w.add(Info, at.String(), EnumExtended, "also allowed now: %s", listed(added))
		}
	}
}

func canonicals(values []apiextensionsv1.JSON) []string {
	texts := make([]string, 0, len(values))
	for _, value := range values {
		texts = append(texts, canonical(value))
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// listed shows the first of many values.
func listed(values []string) string {
	const most = 6
	shown := make([]string, 0, most)
	for _, value := range values[:min(len(values), most)] {
		shown = append(shown, shorten(value, maxValue/2))
	}
	text := strings.Join(shown, ", ")
	if len(values) > most {
		text += fmt.Sprintf(" and %d more", len(values)-most)
	}
	return text
}

// compareFormats compares what the API server checks of a format. Of a string format that it does not know it checks nothing.
func (w *walk) compareFormats(at *path, was, is *apiextensionsv1.JSONSchemaProps) {
	before, after := checkedFormat(was), checkedFormat(is)
	switch {
	case before == after:
	case after == "":
		w.add(Info, at.String(), FormatRemoved, "the format was %s, and is not checked any more", before)
	case before == "" || before == "int64" && after == "int32" || before == "double" && after == "float":
		w.add(Breaking, at.String(), FormatAdded, "the format is %s now%s", after, wasText(before))
	case before == "int32" && after == "int64" || before == "float" && after == "double":
		w.add(Info, at.String(), FormatRemoved, "the format was %s, is %s", before, after)
	default:
		w.add(Risky, at.String(), FormatChanged, "the format was %s, is %s", before, after)
	}
}

func wasText(before string) string {
	if before == "" {
		return ""
	}
	return ", was " + before
}

// stringFormats are those that the API server checks, without their dashes.
var stringFormats = strings.Fields("bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13 " +
	"creditcard ssn hexcolor rgbcolor byte date duration datetime k8sshortname k8slongname")

func checkedFormat(s *apiextensionsv1.JSONSchemaProps) string {
	format := strings.ReplaceAll(s.Format, "-", "")
	switch s.Type {
	case typeInteger:
		if s.Format == "int32" || s.Format == "int64" {
			return s.Format
		}
	case typeNumber:
		if s.Format == "float" || s.Format == "double" {
			return s.Format
		}
	case typeString, "":
		if slices.Contains(stringFormats, format) {
			return format
		}
	}
	return ""
}

func (w *walk) compareBounds(at *path, was, is *apiextensionsv1.JSONSchemaProps) {
	for _, bound := range []struct {
		name    string
		was, is *int64
		least   bool
	}{
		{"maxLength", was.MaxLength, is.MaxLength, false},
		{"minLength", was.MinLength, is.MinLength, true},
		{"maxItems", was.MaxItems, is.MaxItems, false},
		{"minItems", was.MinItems, is.MinItems, true},
		{"maxProperties", was.MaxProperties, is.MaxProperties, false},
		{"minProperties", was.MinProperties, is.MinProperties, true},
	} {
		w.compareBound(at, bound.name, bound.least, sizeLimit(bound.was, bound.least), sizeLimit(bound.is, bound.least))
	}
	w.compareBound(at, "maximum", false, limitOf(was.Maximum, was.ExclusiveMaximum), limitOf(is.Maximum, is.ExclusiveMaximum))
	w.compareBound(at, "minimum", true, limitOf(was.Minimum, was.ExclusiveMinimum), limitOf(is.Minimum, is.ExclusiveMinimum))
	w.compareMultiples(at, was.MultipleOf, is.MultipleOf)
}

// limit is a bound, which a value may reach unless it is exclusive.
type limit struct {
	value     float64
	exclusive bool
	set       bool
}

func (l limit) String() string {
	switch {
	case !l.set:
		return "none"
	case l.exclusive:
		return fmt.Sprintf("%v (exclusive)", l.value)
	default:
		return fmt.Sprint(l.value)
	}
}

// sizeLimit returns the bound of a size. A size is never below zero, so a lower bound of zero is none.
func sizeLimit(value *int64, least bool) limit {
	if value == nil || least && *value <= 0 {
		return limit{}
	}
	return limit{value: float64(*value), set: true}
}

func limitOf(value *float64, exclusive bool) limit {
	if value == nil {
		return limit{}
	}
	return limit{value: *value, exclusive: exclusive, set: true}
}

func (w *walk) compareBound(at *path, name string, least bool, was, is limit) {
	switch {
	case was == is:
	case tighter(was, is, least):
		w.add(Breaking, at.String(), BoundTightened, "%s was %v, is %v", name, was, is)
	default:
		w.add(Info, at.String(), BoundRelaxed, "%s was %v, is %v", name, was, is)
	}
}

// tighter reports whether a bound refuses something that it did not refuse.
func tighter(was, is limit, least bool) bool {
	switch {
	case !is.set:
		return false
	case !was.set:
		return true
	case was.value == is.value:
		return is.exclusive && !was.exclusive
	default:
		return (is.value > was.value) == least
	}
}

func (w *walk) compareMultiples(at *path, was, is *float64) {
	switch {
	case was == nil && is == nil || was != nil && is != nil && *was == *is:
	case is == nil:
		w.add(Info, at.String(), BoundRelaxed, "multipleOf was %v, is none", *was)
	case was == nil:
		w.add(Breaking, at.String(), BoundTightened, "multipleOf was none, is %v", *is)
	case *is != 0 && math.Mod(*was, *is) == 0:
		w.add(Info, at.String(), BoundRelaxed, "multipleOf was %v, is %v", *was, *is)
	default:
		w.add(Breaking, at.String(), BoundTightened, "multipleOf was %v, is %v", *was, *is)
	}
}
