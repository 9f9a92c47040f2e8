package fieldname_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

// variable is the variable of a field as RFC 3875 and its readers write it: letters in upper case, all else but digits as "_".
func variable(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z':
			return c - 'a' + 'A'
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			return c
		}
		return '_'
	}, name)
}

func TestFolded(t *testing.T) {
	for name, want := range map[string]string{
		"X-User": "X-User", "x-user": "X-User", "X_User": "X-User", "X.user": "X-User", "X!User": "X-User", "x~USER": "X-User", "x|user": "X-User",
		"X--User": "X--User", "X-User_": "X-User-", "XUser": "Xuser", "": "", "-": "-", "X_Forwarded.For": "X-Forwarded-For",
	} {
		if got := fieldname.Folded(name); got != want {
			t.Errorf("%q is folded to %q, want %q", name, got, want)
		}
	}
	if allocated := testing.AllocsPerRun(100, func() { fieldname.Folded("X-Forwarded-For") }); allocated > 0 {
		t.Errorf("an ordinary name costs %v allocations", allocated)
	}
}

// Two names have the same folded form exactly if they are the same variable.
func FuzzFolded(f *testing.F) {
	f.Add("X-User", "X.User")
	f.Add("X-User", "x_user")
	f.Add("X-User", "X-Use")
	f.Add("Te", "T\xffe")
	f.Fuzz(func(t *testing.T, a, b string) {
		one, other := fieldname.Folded(a), fieldname.Folded(b)
		if (one == other) != (variable(a) == variable(b)) {
			t.Fatalf("%q and %q are folded to %q and %q, and are the variables %q and %q", a, b, one, other, variable(a), variable(b))
		}
		if again := fieldname.Folded(one); again != one || http.CanonicalHeaderKey(one) != one {
			t.Fatalf("%q is folded to %q, then to %q", a, one, again)
		}
	})
}
