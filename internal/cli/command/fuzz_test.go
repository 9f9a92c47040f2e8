package command

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// Each argument that is accepted names one WebApp. Each other argument is a usage error.
func FuzzTarget(f *testing.F) {
	for _, argument := range []string{"", "shop", "app/shop", "WebApp/shop", "webapps.slipway.dev/shop", "pod/shop", "webapp/", "/", "webapp/a/b", "ⱼ/x"} {
		f.Add(argument)
	}
	f.Fuzz(func(t *testing.T, argument string) {
		name, err := ParseTarget(argument)
		if err != nil {
			if usage := (&ExitError{}); !errors.As(err, &usage) || !usage.usage || !strings.Contains(usage.Message, "webapp/NAME") {
				t.Errorf("%q: %v", argument, err)
			}
			return
		}
		if name == "" || strings.Contains(name, "/") || !strings.HasSuffix(argument, name) {
			t.Errorf("%q names %q", argument, name)
		}
		for _, same := range []string{name, WebAppRef(name), "app/" + name, "WEBAPPS.slipway.dev/" + name} {
			if got, err := ParseTarget(same); err != nil || got != name {
				t.Errorf("%q names %q (%v), and %q names %q", same, got, err, argument, name)
			}
		}
	})
}

// checkPrinted checks that a value fits on a line and has no terminal control characters.
func checkPrinted(t *testing.T, text string) {
	t.Helper()
	if len([]rune(text)) > 83 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("printed as %q", text)
	}
}

// Logs and events contain text that clients sent to the application, so they can contain
// anything.
func FuzzPrintable(f *testing.F) {
	for _, text := range []string{"", "GET /\t200", "\x1b[2Jgone", "a\r", "a\rb", "\u202egnp.exe", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Printable(text)
		checkPrinted(t, got[:min(len(got), 80)])
		if again := Printable(got); again != got {
			t.Errorf("%q is printed as %q, and that as %q", text, got, again)
		}
	})
}
