package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

var (
	// A file or folder of the repository in a page's code, from its root.
	repositoryPath = regexp.MustCompile("[`\\s(\"'](\\./)?((?:api|charts|cmd|config|docs|hack|internal|pkg|test)/[A-Za-z0-9_.*{},/\\[\\]-]+)")
	// A file of a program, by its name or the end of its path.
	sourceFile = regexp.MustCompile("(?:^|[`\\s(\"',])((?:[A-Za-z0-9_-]+/)*[A-Za-z0-9_-]+\\.(?:go|mk))\\b")
	// foreign looks like a file of the repository, and is one of client-go.
	foreign = []string{"tools/cache/reflector.go"}
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*?)\s*$`)
	braces  = regexp.MustCompile(`\{([^{}]*)\}`)
)

// pages are the texts of the repository's pages, by their path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for file, raw := range filesOf(t, func(name string) bool { return strings.HasSuffix(name, ".md") }) {
		found[file] = string(raw)
	}
	if len(found) < 20 {
		t.Fatalf("%d pages", len(found))
	}
	return found
}

// variants takes braces apart, as a shell does.
func variants(text string) []string {
	at := braces.FindStringSubmatchIndex(text)
	if at == nil {
		return []string{text}
	}
	var all []string
	for _, part := range strings.Split(text[at[2]:at[3]], ",") {
		all = append(all, variants(text[:at[0]]+strings.TrimSpace(part)+text[at[1]:])...)
	}
	return all
}

// missing returns the paths in a text of which the repository has no file.
func missing(text string, exists func(pattern string) bool) []string {
	var found []string
	for _, match := range repositoryPath.FindAllStringSubmatch(text, -1) {
		name := strings.TrimRight(match[2], ".,:/")
		name = strings.TrimSuffix(name, "/...")
		for _, one := range variants(name) {
			if !exists(one) && !slices.Contains(found, one) {
				found = append(found, one)
			}
		}
	}
	return found
}

// inRepository reports whether a pattern matches a file or folder. A package's path may go on with a name of it.
func inRepository(pattern string) bool {
	matches, err := filepath.Glob(filepath.Join(root, pattern))
	return err == nil && len(matches) > 0
}

// TestPathsOfPagesExist: no page and no comment of a package names a file that is not there. The changelog is history.
func TestPathsOfPagesExist(t *testing.T) {
	texts := pages(t)
	delete(texts, "CHANGELOG.md")
	for file, raw := range filesOf(t, func(name string) bool { return name == "doc.go" }) {
		texts[file] = string(raw)
	}
	sources := filesOf(t, func(name string) bool { return slices.Contains([]string{".go", ".mk"}, filepath.Ext(name)) })
	for file, text := range texts {
		for _, name := range missing(text, inRepository) {
			t.Errorf("%s names %s, which is not there", file, name)
		}
		for _, match := range sourceFile.FindAllStringSubmatch(text, -1) {
			if !isSource(sources, file, match[1]) && !slices.Contains(foreign, match[1]) {
				t.Errorf("%s names %s, which is not there", file, match[1])
			}
		}
	}
}

// isSource reports whether a file that is named in another exists: the end of its path, and in the comment of a package the
// package's own if it has no folder.
func isSource(sources map[string][]byte, in, name string) bool {
	if path.Ext(in) == ".go" && !strings.Contains(name, "/") {
		_, exists := sources[path.Join(path.Dir(in), name)]
		return exists
	}
	for file := range sources {
		if file == name || strings.HasSuffix(file, "/"+name) {
			return true
		}
	}
	return false
}

// TestEveryPackageIsInTheTree: docs/architecture.md says of each package what it is for. Those of monitor, gateway and testing have
// pages of their own.
func TestEveryPackageIsInTheTree(t *testing.T) {
	_, tree, _ := strings.Cut(pages(t)["docs/architecture.md"], "## Where things are")
	tree = fence.FindString(tree)
	var want, got []string
	for _, pattern := range []string{"internal/*", "internal/kit/*", "internal/controller/*"} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range matches {
			if info, err := os.Stat(match); err == nil && info.IsDir() && info.Name() != "testdata" {
				want = append(want, strings.TrimPrefix(match, root+"/internal/"))
			}
		}
	}
	above := ""
	for _, line := range regexp.MustCompile(`(?m)^( +)([a-z0-9]+)/ `).FindAllStringSubmatch(tree, -1) {
		switch name := line[2]; {
		case len(line[1]) == 2:
			above = name
			got = append(got, name)
		case above == "kit" || above == "controller":
			got = append(got, above+"/"+name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages and the tree (-want +got):\n%s", diff)
	}
}

// TestLinksOfPagesLead: the file of each link is there, and has the heading.
func TestLinksOfPagesLead(t *testing.T) {
	all := pages(t)
	anchors := map[string][]string{}
	for file, text := range all {
		anchors[file] = anchorsOf(text)
	}
	for file, text := range all {
		for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			to := file
			if target != "" {
				to = path.Join(path.Dir(file), target)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: %s is not there", file, match[1])
				continue
			}
			if known, isPage := anchors[to]; anchor != "" && isPage && !slices.Contains(known, anchor) {
				t.Errorf("%s: %s has no such heading", file, match[1])
			}
		}
	}
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them.
func anchorsOf(text string) []string {
	var found []string
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		title := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(match[1], "$1")
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, title)
		found = append(found, anchor)
	}
	return found
}

// filesOf reads the files of the repository that have a name, by their path.
func filesOf(t *testing.T, wanted func(name string) bool) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "bin", "dist", "testdata", "node_modules"}, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !wanted(entry.Name()) {
			return nil
		}
		raw, err := os.ReadFile(file)
		found[strings.TrimPrefix(file, root+"/")] = raw
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestMissing(t *testing.T) {
	there := []string{"internal/a", "internal/a/b.go", "docs/x.md"}
	exists := func(pattern string) bool {
		return slices.ContainsFunc(there, func(name string) bool { ok, _ := path.Match(pattern, name); return ok })
	}
	for text, want := range map[string][]string{
		"see `internal/a/b.go`, and `internal/a`.": nil,
		"see `internal/a/c.go`":                    {"internal/a/c.go"},
		"`internal/a/{b,d}.go`":                    {"internal/a/d.go"},
		"`internal/a/*.go` and `internal/z/*.go`":  {"internal/z/*.go"},
		"go test ./internal/a/...":                 nil,
		"go test ./internal/y/...":                 {"internal/y"},
		"see docs/x.md. and docs/y.md.":            {"docs/y.md"},
		"https://example.com/docs/y.md":            nil,
	} {
		if got := missing(text, exists); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got, want := anchorsOf("# A `b`-c, d\n```\n# no\n```\n## E [f](g)\n"), []string{"a-b-c-d", "e-f"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOneIsNoPlural: what pages show of the output counts one file, and not one files.
func TestOneIsNoPlural(t *testing.T) {
	wrong := regexp.MustCompile(`(?:^|[^0-9.,/])1 (?:more |other )?(?:files|objects|kinds|fields|problems|changes|paths|owners|attributes|schemas|lose fields)\b`)
	for file, text := range pages(t) {
		for _, found := range wrong.FindAllString(text, -1) {
			t.Errorf("%s: %q", file, found)
		}
	}
}
