package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Format is the value of --output.
type Format string

// The formats: a table for people, and for programs the same view as YAML or JSON.
const (
	FormatTable Format = "table"
	FormatYAML  Format = "yaml"
	FormatJSON  Format = "json"
)

var formats = []string{string(FormatTable), string(FormatYAML), string(FormatJSON)}

// String returns the value of the flag.
func (f *Format) String() string { return string(*f) }

// Type names the values in the help text.
func (f *Format) Type() string { return strings.Join(formats, "|") }

// Set parses the value of the flag.
func (f *Format) Set(value string) error {
	switch Format(value) {
	case FormatTable, FormatYAML, FormatJSON:
		*f = Format(value)
		return nil
	default:
		return fmt.Errorf("must be one of %s", strings.Join(formats, ", "))
	}
}

// AddFlag adds --output. The value that the format has is the default.
func (f *Format) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "how to show the result")
	MustComplete(cmd, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// Print writes a view as YAML or JSON.
func (f *Format) Print(out io.Writer, view any) error {
	return f.print(out, view, "  ")
}

// PrintNext writes one view of a stream. JSON is on one line, YAML is a document of its
// own.
func (f *Format) PrintNext(out io.Writer, view any) error {
	if *f == FormatYAML {
		if _, err := fmt.Fprintln(out, "---"); err != nil {
			return err
		}
	}
	return f.print(out, view, "")
}

func (f *Format) print(out io.Writer, view any, indent string) error {
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(view); err != nil {
		return fmt.Errorf("encode as JSON: %w", err)
	}
	if *f == FormatYAML {
		return printYAML(out, text.Bytes())
	}
	_, err := out.Write(escapeUnprintable(text.Bytes()))
	return err
}

// printYAML writes JSON as YAML. It does not read the JSON with a YAML parser, as
// sigs.k8s.io/yaml does: that refuses control characters and keys of over 1,024 characters, and
// reads U+0085 as a space.
func printYAML(out io.Writer, text []byte) error {
	var tree any
	if err := utiljson.Unmarshal(text, &tree); err != nil {
		return fmt.Errorf("read JSON for YAML: %w", err)
	}
	// The encoder does not quote the key <<, and who reads it merges what is below. A text that stands nowhere takes its place.
	standIn := "merge-key"
	for bytes.Contains(text, []byte(standIn)) {
		standIn += "-"
	}
	raw, err := yaml.Marshal(renameMergeKeys(tree, standIn))
	if err != nil {
		return fmt.Errorf("encode as YAML: %w", err)
	}
	_, err = out.Write(bytes.ReplaceAll(raw, []byte(standIn), []byte(`"<<"`)))
	return err
}

// renameMergeKeys gives each key << another name.
func renameMergeKeys(tree any, name string) any {
	switch in := tree.(type) {
	case map[string]any:
		for key := range in {
			in[key] = renameMergeKeys(in[key], name)
		}
		if value, has := in["<<"]; has {
			delete(in, "<<")
			in[name] = value
		}
	case []any:
		for i := range in {
			in[i] = renameMergeKeys(in[i], name)
		}
	}
	return tree
}

// escapeUnprintable writes what is no printable character as \uXXXX. encoding/json leaves DEL
// and U+0080 to U+009F as they are, and some of them are commands for a terminal.
func escapeUnprintable(text []byte) []byte {
	escaped := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r == '\n' || unicode.IsPrint(r) {
			escaped = utf8.AppendRune(escaped, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			escaped = fmt.Appendf(escaped, `\u%04x`, unit)
		}
	}
	return escaped
}

// Table writes rows in aligned columns, without trailing blanks.
func Table(out io.Writer, rows [][]string) error {
	const gap = 3
	var widths []int
	for _, row := range rows {
		for column, cell := range row {
			if column == len(widths) {
				widths = append(widths, 0)
			}
			widths[column] = max(widths[column], utf8.RuneCountInString(Printable(cell)))
		}
	}
	text := &strings.Builder{}
	for _, row := range rows {
		line := &strings.Builder{}
		for column, cell := range row {
			cell = Printable(cell)
			fmt.Fprint(line, cell, strings.Repeat(" ", widths[column]+gap-utf8.RuneCountInString(cell)))
		}
		fmt.Fprintln(text, strings.TrimRight(line.String(), " "))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// Age formats the time since then, as kubectl does.
func Age(then metav1.Time, now time.Time) string {
	if then.IsZero() {
		return "unknown"
	}
	return duration.HumanDuration(now.Sub(then.Time))
}

// OrNone replaces an empty text in a list of what an object has.
func OrNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

// OrDash replaces an empty text in a column.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
