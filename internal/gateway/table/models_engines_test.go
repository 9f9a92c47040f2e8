package table_test

import (
	"regexp"
	"strings"
	"unicode/utf8"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// engine tells which texts an expression between ^ and $ takes for the whole of a text, in an engine for regular expressions. It is
// written after the engine's documentation.
type engine struct {
	name   string
	wholes func(text string) []string
}

var engines = []engine{
	{"PCRE, Perl, Python and .NET", func(text string) []string { return []string{strings.TrimSuffix(text, "\n")} }},
	{"Ruby", func(text string) []string { return strings.Split(text, "\n") }},
	{"an engine of many lines", func(text string) []string { return lineEnds.Split(text, -1) }},
	{"Java", func(text string) []string { return []string{lastLineEnd.ReplaceAllString(text, "")} }},
	{"Java that reads Latin-1", func(text string) []string { return []string{strings.TrimSuffix(text, "\x85")} }},
	{"a program that cuts control characters off", func(text string) []string { return []string{lastControls.ReplaceAllString(text, "")} }},
}

// lineEnds are what Java's Pattern calls line terminators.
var (
	lineEnds     = regexp.MustCompile(`\r\n|[\n\r\x{85}\x{2028}\x{2029}]`)
	lastLineEnd  = regexp.MustCompile(`(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])\z`)
	lastControls = regexp.MustCompile(`[\x00-\x1f\x7f-\x{9f}\x{2028}\x{2029}]+\z`)
)

// whole is a text that a model takes for the whole path, and the routes as it compares them.
type whole struct {
	model, text string
	routes      []slipwayv1alpha1.Route
}

// wholes are the path itself, what engines take for it, and the path for an engine whose dot is no line end.
func wholes(in []slipwayv1alpha1.Route, model, path string) []whole {
	all := []whole{{model, path, in}}
	if !strings.ContainsFunc(path, func(r rune) bool {
		return r < ' ' || 0x7f <= r && r <= 0x9f || r == 0x2028 || r == 0x2029 || r == utf8.RuneError
	}) {
		return all // no engine sees another text
	}
	seen := map[string]bool{path: true}
	for _, e := range engines {
		for _, text := range e.wholes(path) {
			if !seen[text] && strings.HasPrefix(text, "/") {
				seen[text] = true
				all = append(all, whole{model + ", then " + e.name, text, in})
			}
		}
	}
	if !lineEnds.MatchString(path) {
		return all
	}
	narrow := make([]slipwayv1alpha1.Route, len(in))
	copy(narrow, in)
	for i := range narrow {
		if narrow[i].PathType == slipwayv1alpha1.PathRegularExpression {
			narrow[i].Path = "(?-s:" + narrow[i].Path + ")"
		}
	}
	return append(all, whole{model + ", then an engine whose dot is no line end", path, narrow})
}
