package crd

import (
	"fmt"
	"io"
	"strings"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/monitor/crdcheck"
	"github.com/slipway-dev/slipway/internal/text"
)

const (
	// maxReported is how many objects a report holds, maxShown how many of them a table shows.
	maxReported = 10_000
	maxShown    = 30
)

// crdReport is what is said of one definition.
type crdReport struct {
	Name string `json:"name"`
	// New reports whether there is no such definition yet.
	New bool `json:"new,omitempty"`
	// Breaks reports whether something breaks.
	Breaks   bool               `json:"breaks"`
	Findings []crdcheck.Finding `json:"findings"`
	// Objects is nil when objects were not looked for.
	Objects *crdObjects `json:"objects,omitempty"`
}

// crdObjects is what is said of its objects.
type crdObjects struct {
	// Checked is how many objects there are.
	Checked int `json:"checked"`
	// Breaks is how many of them cannot be written, BreaksOnEdit how many of the others cannot be edited in places, Pruned how
	// many lose fields, and Unknown how many could not be checked in every version.
	Breaks       int `json:"breaks"`
	BreaksOnEdit int `json:"breaksOnEdit"`
	Pruned       int `json:"pruned"`
	Unknown      int `json:"unknown"`
	// NotChecked says why not all objects were looked at.
	NotChecked string `json:"notChecked,omitempty"`
	// List are the verdicts that are not good, and More how many are left out.
	List []crdObject `json:"list"`
	More int         `json:"more,omitempty"`
}

// crdObject is an object and its verdict.
type crdObject struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Version is the version of the definition with which it was checked.
	Version string `json:"version"`
	crdcheck.Verdict
}

// add counts an object by the worst of its verdicts, and keeps those with something to say.
func (f *crdObjects) add(verdicts []crdObject) {
	states, pruned := map[crdcheck.State]bool{}, false
	for _, v := range verdicts {
		states[v.State] = true
		pruned = pruned || len(v.Pruned) > 0
		f.keep(v)
	}
	switch {
	case states[crdcheck.Breaks]:
		f.Breaks++
	case states[crdcheck.BreaksOnEdit]:
		f.BreaksOnEdit++
	}
	if states[crdcheck.Unknown] {
		f.Unknown++
	}
	if pruned {
		f.Pruned++
	}
}

func (f *crdObjects) keep(v crdObject) {
	switch {
	case v.State == crdcheck.Fine && len(v.Pruned) == 0 && len(v.Problems) == 0 && v.Incomplete == "":
	case len(f.List) >= maxReported:
		f.More++
	default:
		f.List = append(f.List, v)
	}
}

func (r *crdReport) breaks() bool {
	for _, finding := range r.Findings {
		if finding.Severity == crdcheck.Breaking {
			return true
		}
	}
	return r.Objects != nil && r.Objects.Breaks+r.Objects.BreaksOnEdit+r.Objects.Pruned > 0
}

func (o *crdCheckOptions) show(reports []crdReport) error {
	if o.output != command.FormatTable {
		return o.output.Print(o.Streams.Out, reports)
	}
	for i := range reports {
		if i > 0 {
			if _, err := fmt.Fprintln(o.Streams.Out); err != nil {
				return err
			}
		}
		if err := printCRD(o.Streams.Out, &reports[i]); err != nil {
			return err
		}
	}
	return nil
}

func printCRD(out io.Writer, report *crdReport) error {
	if _, err := fmt.Fprintln(out, command.Printable(crdLine(report))); err != nil {
		return err
	}
	if len(report.Findings) > 0 {
		rows := [][]string{{"SEVERITY", "VERSION", "FIELD", "CHANGE", "MESSAGE"}}
		for _, f := range report.Findings {
			rows = append(rows, []string{string(f.Severity), command.OrDash(f.Version), command.OrDash(f.Path), string(f.Code), f.Message})
		}
		if err := command.Table(out, rows); err != nil {
			return err
		}
	}
	if report.Objects == nil || len(report.Objects.List) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return printCRDObjects(out, report.Objects)
}

// crdLine says of a definition what matters most.
func crdLine(report *crdReport) string {
	counts := map[crdcheck.Severity]int{}
	for _, finding := range report.Findings {
		counts[finding.Severity]++
	}
	var parts []string
	switch {
	case report.New:
		parts = append(parts, "new")
	case len(report.Findings) == 0:
		parts = append(parts, "nothing changed")
	}
	if len(report.Findings) > 0 {
		parts = append(parts, fmt.Sprintf("%d breaking, %d risky, %s",
			counts[crdcheck.Breaking], counts[crdcheck.Risky], text.Count(int64(counts[crdcheck.Info]), "other change")))
	}
	line := report.Name + ": " + strings.Join(parts, ", ")
	if report.Objects != nil {
		line += "; " + crdObjectsLine(report.Objects)
	}
	return line
}

func crdObjectsLine(objects *crdObjects) string {
	line := text.Count(int64(objects.Checked), "object") + " checked"
	lose := "lose"
	if objects.Pruned == 1 {
		lose = "loses"
	}
	var parts []string
	for _, part := range []struct {
		count int
		text  string
	}{
		{objects.Breaks, "%d cannot be written"},
		{objects.BreaksOnEdit, "%d cannot be edited in places"},
		{objects.Pruned, "%d " + lose + " fields"},
		{objects.Unknown, "%d could not be checked"},
	} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf(part.text, part.count))
		}
	}
	switch {
	case objects.NotChecked != "":
		parts = append(parts, "not all were checked: "+objects.NotChecked)
	case len(parts) == 0:
		parts = append(parts, "all fine")
	}
	return line + ": " + strings.Join(parts, ", ")
}

func printCRDObjects(out io.Writer, objects *crdObjects) error {
	rows := [][]string{{"OBJECT", "VERSION", "STATE", "FIELD", "MESSAGE"}}
	shown := objects.List[:min(len(objects.List), maxShown)]
	for i := range shown {
		rows = append(rows, crdObjectRows(&shown[i])...)
	}
	if err := command.Table(out, rows); err != nil {
		return err
	}
	left := len(objects.List) - len(shown) + objects.More
	if left == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "... and %d more (see -o yaml)\n", left)
	return err
}

// crdObjectRows are the lines of an object: one for each thing to say. Its name is in the first.
func crdObjectRows(object *crdObject) [][]string {
	name := object.Name
	if object.Namespace != "" {
		name = object.Namespace + "/" + name
	}
	var rows [][]string
	add := func(field, message string) {
		first := []string{name, object.Version, string(object.State)}
		if len(rows) > 0 {
			first = []string{"", "", ""}
		}
		rows = append(rows, append(first, command.OrDash(field), message))
	}
	for _, problem := range object.Problems {
		add(problem.Field, refusalText(problem)+": "+problem.Message)
	}
	if object.MoreProblems > 0 {
		add("", "and "+text.Count(int64(object.MoreProblems), "more problem"))
	}
	for _, field := range object.Pruned {
		add(field, "is removed")
	}
	switch {
	case object.MorePruned == 1:
		add("", "and 1 more field is removed")
	case object.MorePruned > 0:
		add("", fmt.Sprintf("and %d more fields are removed", object.MorePruned))
	}
	if object.Incomplete != "" {
		add("", object.Incomplete)
	}
	return rows
}

// refusalText says which writes a problem refuses.
func refusalText(problem crdcheck.Problem) string {
	switch problem.When {
	case crdcheck.EveryWrite:
		return "every write is refused"
	case crdcheck.EveryStatusWrite:
		return "every write of the status is refused"
	case crdcheck.OnEdit:
		if problem.Edit == problem.Field {
			return "an edit is refused"
		}
		return "an edit of " + problem.Edit + " is refused"
	default:
		return "a new object like this is refused"
	}
}
