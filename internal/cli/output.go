package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"
)

// format is the value of --output.
type format string

const (
	formatTable format = "table"
	formatYAML  format = "yaml"
	formatJSON  format = "json"
)

var formats = []string{string(formatTable), string(formatYAML), string(formatJSON)}

// String returns the value of the flag.
func (f *format) String() string { return string(*f) }

// Type names the values in the help text.
func (f *format) Type() string { return strings.Join(formats, "|") }

// Set parses the value of the flag.
func (f *format) Set(value string) error {
	switch format(value) {
	case formatTable, formatYAML, formatJSON:
		*f = format(value)
		return nil
	default:
		return fmt.Errorf("must be one of %s", strings.Join(formats, ", "))
	}
}

func (f *format) addFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "how to show the result")
	mustComplete(cmd, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// print writes a view as YAML or JSON.
func (f *format) print(out io.Writer, view any) error {
	if *f == formatYAML {
		raw, err := yaml.Marshal(view)
		if err != nil {
			return fmt.Errorf("encode as YAML: %w", err)
		}
		_, err = out.Write(raw)
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(view)
}

// printNext writes one view of a stream. JSON is on one line, YAML is a document of its
// own.
func (f *format) printNext(out io.Writer, view any) error {
	if *f == formatYAML {
		if _, err := fmt.Fprintln(out, "---"); err != nil {
			return err
		}
		return f.print(out, view)
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(view)
}

// table writes rows in aligned columns, without trailing blanks.
func table(out io.Writer, rows [][]string) error {
	const gap = 3
	var widths []int
	for _, row := range rows {
		for column, cell := range row {
			if column == len(widths) {
				widths = append(widths, 0)
			}
			widths[column] = max(widths[column], utf8.RuneCountInString(printable(cell)))
		}
	}
	text := &strings.Builder{}
	for _, row := range rows {
		line := &strings.Builder{}
		for column, cell := range row {
			cell = printable(cell)
			fmt.Fprint(line, cell, strings.Repeat(" ", widths[column]+gap-utf8.RuneCountInString(cell)))
		}
		fmt.Fprintln(text, strings.TrimRight(line.String(), " "))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// age formats the time since then, as kubectl does.
func age(then metav1.Time, now time.Time) string {
	if then.IsZero() {
		return "unknown"
	}
	return duration.HumanDuration(now.Sub(then.Time))
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
