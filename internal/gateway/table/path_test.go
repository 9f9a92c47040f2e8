package table_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

func TestBackendAndTableSeeTheSamePath(t *testing.T) {
	tests := map[string]struct {
		escaped, forward, match string
	}{
		"plain":                           {"/a/b.c", "/a/b.c", "/a/b.c"},
		"root":                            {"/", "/", "/"},
		"slash at the end":                {"/a/", "/a/", "/a/"},
		"empty segments":                  {"//a///b", "//a///b", "/a/b"},
		"empty segments at the end":       {"/a//", "/a//", "/a/"},
		"only slashes":                    {"///", "///", "/"},
		"escapes":                         {"/%61/%20", "/%61/%20", "/a/ "},
		"escaped percent":                 {"/100%25", "/100%25", "/100%"},
		"escaped slash":                   {"/a%2fb/c", "/a%2fb/c", "/a%2Fb/c"},
		"dot":                             {"/a/./b", "/a/b", "/a/b"},
		"dot at the end":                  {"/a/.", "/a/", "/a/"},
		"dots":                            {"/a/../b", "/b", "/b"},
		"dots at the end":                 {"/a/b/..", "/a/", "/a/"},
		"dots above the root":             {"/../../a", "/a", "/a"},
		"only dots":                       {"/..", "/", "/"},
		"escaped dots":                    {"/a/%2e%2E/b", "/b", "/b"},
		"a name that begins with dots":    {"/..a/.b", "/..a/.b", "/..a/.b"},
		"dots after an empty segment":     {"/a//../b", "/a/b", "/a/b"},
		"UTF-8":                           {"/%C3%A4/ö", "/%C3%A4/ö", "/ä/ö"},
		"a name beside an escaped slash":  {"/a%2F.b", "/a%2F.b", "/a%2F.b"},
		"a backslash is part of a name":   {`/a\b`, `/a\b`, `/a\b`},
		"an escaped backslash":            {"/a%5cb/c", "/a%5cb/c", `/a\b/c`},
		"parameters":                      {"/a;x=1/b;y", "/a;x=1/b;y", "/a;x=1/b;y"},
		"nothing but parameters":          {"/a/;x", "/a/;x", "/a/;x"},
		"an escaped semicolon":            {"/a%3bx", "/a%3bx", "/a;x"},
		"three dots beside escaped slash": {"/...%2F", "/...%2F", "/...%2F"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := table.ParsePath(tc.escaped)
			if err != nil || got.Forward != tc.forward || got.Match != tc.match {
				t.Errorf("got %+v, %v, want %s and %s", got, err, tc.forward, tc.match)
			}
		})
	}
}

func TestAPathThatCouldMeanTwoThingsIsRefused(t *testing.T) {
	for name, escaped := range map[string]string{
		"empty":         "",
		"relative":      "a/b",
		"asterisk":      "*",
		"blank":         "/a b",
		"line feed":     "/a\nb",
		"question mark": "/a?b",
		"fragment":      "/a#b",
		"cut escape":    "/a%2",
		"no escape":     "/a%zz",
		"escaped zero":  "/a%00",
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
		if err != nil || again.Forward != path.Forward || again.Match != path.Match {
			t.Fatalf("%q is %+v, and once more %+v, %v", escaped, path, again, err)
		}
		if slices.ContainsFunc(strings.Split(path.Forward, "/"), func(segment string) bool { return segment == "." || segment == ".." }) {
			t.Errorf("%q: the backend gets %q", escaped, path.Forward)
		}
		if !strings.HasPrefix(path.Match, "/") || strings.Contains(path.Match, "//") {
			t.Errorf("%q: the table gets %q", escaped, path.Match)
		}
	})
}

func TestWhichPathsEveryServerReadsAlike(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a/b": true, "/a/": true, "/a%20b": true, "/caf%C3%A9": true, "/a/../b": true, "/a/./b": true, "/100%25": true, "/a%7eb": true,
		"/a//b": false, "/a%2Fb": false, "/a;x/b": false, "/a;/../b": true, `/a\b`: false, "/a%5Cb": false, "/a%3Bb": false, "/a%252Fb": false,
		"/a%3Fb": false, "/a%23b": false, "//a": false, "/%c0%af": false, "/a%2561": false, "/a/%252e%252e/b": false,
	} {
		t.Run(path, func(t *testing.T) {
			parsed, err := table.ParsePath(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := parsed.ReadsOneWay(); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
