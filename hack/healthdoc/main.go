// Command healthdoc writes docs/health.md: the tables from the data by which internal/health judges, the rest from
// health.md.tmpl.
package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/slipway-dev/slipway/hack/generated"
	"github.com/slipway-dev/slipway/internal/health"
)

//go:generate go run . -output ../../docs/health.md

//go:embed health.md.tmpl
var page string

func main() { generated.Main("healthdoc", render) }

// tables are what the page shows.
type tables struct {
	Classes    []health.ClassTypes
	Phases     []health.PhaseWords
	Profiles   []health.Profile
	ErrorWords []string
	BusyWords  []string
	DoneWords  []string
	RestWords  []string
	// WholeWords, Ends and OtherTimes are names of fields with words.
	WholeWords, Ends, OtherTimes []string
	Suspend                      []health.Test
}

func render() ([]byte, error) {
	return generated.Fill(page, template.FuncMap{"names": names, "decides": decides}, tables{
		Classes: health.Polarity(), Phases: health.Phases(), Profiles: health.Shipped().List(),
		ErrorWords: health.ErrorWords(), BusyWords: health.BusyWords(), DoneWords: health.DoneWords(), RestWords: health.RestWords(),
		WholeWords: health.WholeWords(), Ends: health.EndsOfWords(), OtherTimes: health.OtherTimes(), Suspend: health.SuspendFields(),
	})
}

// names writes words as code.
func names(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// decides says in one cell how a profile judges.
func decides(p health.Profile) string {
	var parts []string
	if p.HasNoStatus {
		return "has no status: `Unknown`"
	}
	if p.MayHaveNoStatus {
		parts = append(parts, "without a status: `Unknown` (`HasNoStatus`)")
	}
	for _, test := range p.Suspended {
		parts = append(parts, fmt.Sprintf("`Unknown` (suspended): `%s`", test))
	}
	for _, rule := range p.Rules {
		var tests []string
		for _, test := range rule.When {
			tests = append(tests, "`"+test.String()+"`")
		}
		state := "`" + string(rule.State) + "`"
		if rule.Patience > 0 {
			state += fmt.Sprintf(" after %d minutes", int(rule.Patience.Minutes()))
		}
		parts = append(parts, state+": "+strings.Join(tests, " and "))
	}
	if len(p.Whole) > 0 {
		parts = append(parts, "must be True: "+names(p.Whole))
	}
	for _, items := range p.Items {
		part := "the worst of `" + items.Path + "`"
		if len(items.Whole) > 0 {
			part += ", each with " + names(items.Whole)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 && len(p.Conditions) == 0 {
		return "by its Go type, as a rollout is judged"
	}
	parts = append(parts, conditions(p.Conditions)...)
	return strings.Join(parts, "<br>")
}

func conditions(classes map[string]health.Class) []string {
	byClass := map[health.Class][]string{}
	for name, class := range classes {
		byClass[class] = append(byClass[class], name)
	}
	var parts []string
	for _, class := range []health.Class{health.ClassReady, health.ClassPart, health.ClassBad, health.ClassBusy, health.ClassIgnored} {
		if list := byClass[class]; len(list) > 0 {
			parts = append(parts, string(class)+": "+names(slices.Sorted(slices.Values(list))))
		}
	}
	return parts
}
