package command

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Objects, logs and files hold any text. Whatever it is, YAML and JSON are read again as the
// same text, and have no command for a terminal.
func TestEveryCharacterIsReadAgain(t *testing.T) {
	all := &strings.Builder{}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		all.WriteRune(r)
	}
	views := map[string]string{
		"all": all.String(), "empty": "", "control": "\x1b[2J\x7f\u0080\u009b\u009f", "next line": "a\u0085b", "separators": "a\u2028b\u2029c",
		"byte order mark": "\ufeffa", "directions": "a\u202eb", "escapes": `\u0041\n`, "number": "1e3", "merge": "<<", "stand-in": "merge-key: merge-key-\n<<: a\n", "long": strings.Repeat("key", 1000),
	}
	for name, text := range views {
		want := map[string]any{"text": text, text: "key", "lists": []any{map[string]any{"<<": map[string]any{"a": "b"}}}, "numbers": []any{1.5, float64(1 << 40), 0.0, true, nil}}
		for _, format := range []Format{FormatJSON, FormatYAML} {
			t.Run(name+" as "+string(format), func(t *testing.T) {
				for _, show := range []func(*Format, *bytes.Buffer) error{
					func(f *Format, out *bytes.Buffer) error { return f.Print(out, want) },
					func(f *Format, out *bytes.Buffer) error { return f.PrintNext(out, want) },
				} {
					out := &bytes.Buffer{}
					if err := show(&format, out); err != nil {
						t.Fatal(err)
					}
					if strings.ContainsFunc(out.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
						t.Errorf("printed a control character: %.200q", out)
					}
					read := json.Unmarshal
					if format == FormatYAML {
						read = func(raw []byte, into any) error { return yaml.Unmarshal(raw, into) }
					}
					got := map[string]any{}
					if err := read(out.Bytes(), &got); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("read again (-want +got):\n%.500s", diff)
					}
				}
			})
		}
	}
}
