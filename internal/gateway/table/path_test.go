package table_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

func TestBackendAndTableSeeTheSamePath(t *testing.T) {
	tests := map[string]struct {
		escaped, forward, match, other string
	}{
		"plain":                           {"/a/b.c", "/a/b.c", "/a/b.c", ""},
		"root":                            {"/", "/", "/", ""},
		"slash at the end":                {"/a/", "/a/", "/a/", ""},
		"empty segments":                  {"//a///b", "//a///b", "/a/b", ""},
		"empty segments at the end":       {"/a//", "/a//", "/a/", ""},
		"only slashes":                    {"///", "///", "/", ""},
		"escapes":                         {"/%61/%20", "/%61/%20", "/a/ ", ""},
		"escaped percent":                 {"/100%25", "/100%25", "/100%", ""},
		"escaped slash":                   {"/a%2fb/c", "/a%2fb/c", "/a%2Fb/c", "/a/b/c"},
		"dot":                             {"/a/./b", "/a/b", "/a/b", ""},
		"dot at the end":                  {"/a/.", "/a/", "/a/", ""},
		"dots":                            {"/a/../b", "/b", "/b", ""},
		"dots at the end":                 {"/a/b/..", "/a/", "/a/", ""},
		"dots above the root":             {"/../../a", "/a", "/a", ""},
		"only dots":                       {"/..", "/", "/", ""},
		"escaped dots":                    {"/a/%2e%2E/b", "/b", "/b", ""},
		"a name that begins with dots":    {"/..a/.b", "/..a/.b", "/..a/.b", ""},
		"dots after an empty segment":     {"/a//../b", "/a/b", "/a/b", ""},
		"UTF-8":                           {"/%C3%A4/ö", "/%C3%A4/ö", "/ä/ö", ""},
		"a name beside an escaped slash":  {"/a%2F.b", "/a%2F.b", "/a%2F.b", "/a/.b"},
		"a backslash is part of a name":   {`/a\b`, `/a\b`, `/a\b`, "/a/b"},
		"an escaped backslash":            {"/a%5cb/c", "/a%5cb/c", `/a\b/c`, "/a/b/c"},
		"parameters":                      {"/a;x=1/b;y", "/a;x=1/b;y", "/a;x=1/b;y", "/a/b"},
		"nothing but parameters":          {"/a/;x", "/a/;x", "/a/;x", "/a/"},
		"an escaped semicolon":            {"/a%3bx", "/a%3bx", "/a;x", "/a"},
		"three dots beside escaped slash": {"/...%2F", "/...%2F", "/...%2F", "/.../"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := table.ParsePath(tc.escaped)
			if want := (table.Path{Forward: tc.forward, Match: tc.match, Other: tc.other}); err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestAPathThatCouldMeanTwoThingsIsRefused(t *testing.T) {
	for name, escaped := range map[string]string{
		"empty":                        "",
		"relative":                     "a/b",
		"asterisk":                     "*",
		"blank":                        "/a b",
		"line feed":                    "/a\nb",
		"question mark":                "/a?b",
		"fragment":                     "/a#b",
		"cut escape":                   "/a%2",
		"no escape":                    "/a%zz",
		"escaped zero":                 "/a%00",
		"dots before an escaped slash": "/public/..%2Fadmin",
		"dots after an escaped slash":  "/public/x%2f%2e%2e/admin",
		"dot beside a backslash":       `/public/.\admin`,
		"dots beside a backslash":      "/public/..%5Cadmin",
		"dots before parameters":       "/public/..;x=1/admin",
		"dot before parameters":        "/public/.;/admin",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := table.ParsePath(escaped); err == nil {
				t.Errorf("%q is %+v", escaped, got)
			}
		})
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"/", "/a/../b", "//a/./%2e%2e/b/", "/%2F..%5c", "/a%2fb//", "/a;b/..;/c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		path, err := table.ParsePath(escaped)
		if err != nil {
			return
		}
		again, err := table.ParsePath(path.Forward)
		if err != nil || again != path {
			t.Fatalf("%q is %+v, and once more %+v, %v", escaped, path, again, err)
		}
		// Whatever a backend makes of the path, dots lead it nowhere.
		decoded, err := url.PathUnescape(path.Forward)
		if err != nil {
			t.Fatalf("%q: the backend gets %q: %v", escaped, path.Forward, err)
		}
		parts := strings.FieldsFunc(decoded, func(r rune) bool { return r == '/' || r == '\\' })
		for i := range parts {
			parts[i], _, _ = strings.Cut(parts[i], ";")
		}
		if slices.Contains(parts, "..") || slices.Contains(parts, ".") {
			t.Errorf("%q: the backend gets %q", escaped, path.Forward)
		}
		if !strings.HasPrefix(path.Match, "/") || strings.Contains(path.Match, "//") {
			t.Errorf("%q: the table gets %q", escaped, path.Match)
		}
	})
}
