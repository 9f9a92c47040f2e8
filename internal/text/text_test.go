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
