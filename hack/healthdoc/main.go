// Command healthdoc writes docs/health.md: the tables from the data by which internal/health judges, the rest from
// health.md.tmpl.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/template"

	"github.com/slipway-dev/slipway/internal/health"
)

//go:generate go run . -output ../../docs/health.md

//go:embed health.md.tmpl
var page string

func main() {
	output := flag.String("output", "", "file to write (required)")
	flag.Parse()
	if err := run(*output); err != nil {
		fmt.Fprintln(os.Stderr, "healthdoc:", err)
		os.Exit(1)
	}
}

// run writes the page, unless the file holds it already.
func run(output string) error {
	if output == "" {
		return fmt.Errorf("-output is required")
	}
	content, err := render()
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(output); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return os.WriteFile(output, content, 0o644)
}

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
	tmpl, err := template.New("health.md").
		Option("missingkey=error").
		Funcs(template.FuncMap{"names": names, "decides": decides}).
		Parse(page)
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	var out bytes.Buffer
	err = tmpl.Execute(&out, tables{
		Classes: health.Polarity(), Phases: health.Phases(), Profiles: health.Shipped().List(),
		ErrorWords: health.ErrorWords(), BusyWords: health.BusyWords(), DoneWords: health.DoneWords(), RestWords: health.RestWords(),
		WholeWords: health.WholeWords(), Ends: health.EndsOfWords(), OtherTimes: health.OtherTimes(), Suspend: health.SuspendFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("fill in the page: %w", err)
	}
	return out.Bytes(), nil
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
