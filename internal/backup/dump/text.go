package dump

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/redact"
)

// maxQuoted is how much of a text of the command is quoted, in bytes. It is the end of the text, which mostly has the cause.
const maxQuoted = 512

// printable returns the end of a text as one line, without anything that does not print or that changes how other text is
// shown, and without secrets. Lines are set off by a slash.
func printable(text string, limit int) string {
	text = redact.Clean(text) // before anything is cut off
	var line strings.Builder
	for part := range strings.FieldsFuncSeq(strings.ToValidUTF8(text, "?"), func(r rune) bool { return r == '\n' || r == '\r' }) {
		clean := strings.Join(strings.FieldsFunc(part, func(r rune) bool {
			return unicode.IsSpace(r) || !unicode.IsPrint(r)
		}), " ")
		if clean == "" {
			continue
		}
		if line.Len() > 0 {
			line.WriteString(" / ")
		}
		line.WriteString(clean)
	}
	return lastBytes(line.String(), limit)
}

// lastBytes cuts off the beginning of a text that is too long, not within a character.
func lastBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	begin := len(text) - limit + len(ellipsis)
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	return ellipsis + text[begin:]
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	bytes []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.bytes = append(t.bytes, p[max(0, len(p)-t.limit):]...)
	if over := len(t.bytes) - t.limit; over > 0 {
		t.bytes = bytes.Clone(t.bytes[over:])
	}
	return len(p), nil
}

// secretsOf knows the values of environment variables, and puts the variables' names in their place. Which of them are secret
// nobody here can tell, and what a command says goes into the status of an object, which more people may read than Secrets.
func secretsOf(environment []string) *redact.Redactor {
	var values []redact.Value
	for _, setting := range environment {
		if name, value, ok := strings.Cut(setting, "="); ok {
			values = append(values, redact.Value{Name: name, Text: value, Marker: "$" + name})
		}
	}
	return redact.New(values...)
}
