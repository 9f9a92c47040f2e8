package text_test

import (
	"testing"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/text"
)

func TestCutEndsBetweenCharacters(t *testing.T) {
	for _, tc := range []struct {
		given string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"too long", 7, "too ..."},
		{"xüüü", 6, "xü..."},
		{"xüüü", 5, "x..."},
		{"üü", 3, "..."},
	} {
		got := text.Cut(tc.given, tc.limit)
		if got != tc.want || len(got) > tc.limit || !utf8.ValidString(got) {
			t.Errorf("Cut(%q, %d) = %q, want %q", tc.given, tc.limit, got, tc.want)
		}
	}
}

func TestPrintableHoldsNothingThatATerminalObeys(t *testing.T) {
	for given, want := range map[string]string{
		"":                      "",
		"the bucket is missing": "the bucket is missing",
		"Schlüssel 鍵 ✓":         "Schlüssel 鍵 ✓",
		"a\nb\tc\r\u2028d":      "a b c  d",
		"\x1b[2J\a":             "\ufffd[2J\ufffd",
		"a\u202eb\u200b\x00":    "a\ufffdb\ufffd\ufffd",
		"\xff\xc3":              "\ufffd\ufffd",
	} {
		if got := text.Printable(given); got != want {
			t.Errorf("Printable(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestCountOfOneIsNoPlural(t *testing.T) {
	for n, want := range map[int64]string{0: "0 files", 1: "1 file", 2: "2 files"} {
		if got := text.Count(n, "file"); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
