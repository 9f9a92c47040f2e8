package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	// treeLine is a folder in the tree of docs/architecture.md, with what it is for.
	treeLine = regexp.MustCompile(`(?m)^( +)([a-z0-9]+)/ +(.*)$`)
	// packageRow is a package in a table, with what it is for.
	packageRow = regexp.MustCompile("(?m)^\\| `(internal/[a-z0-9/]+)` \\| pure: ")
	saysPure   = regexp.MustCompile(`\b(?:It|[Pp]ackage(?: [a-z0-9]+ .*)?) is pure\b`)
)

// pureFolders are the patterns of the rule pure in .golangci.yml: the one list of pure packages.
func pureFolders(t *testing.T) map[string]*regexp.Regexp {
	t.Helper()
	config := struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct{ Files []string }
				}
			}
		}
	}{}
	if err := yaml.Unmarshal(filesOf(t, func(name string) bool { return name == ".golangci.yml" })[".golangci.yml"], &config); err != nil {
		t.Fatal(err)
	}
	found := map[string]*regexp.Regexp{}
	for _, pattern := range config.Linters.Settings.Depguard.Rules["pure"].Files {
		if strings.HasPrefix(pattern, "!") {
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(pattern, "**/"), "/**")
		found[name] = regexp.MustCompile(`(^|/)` + regexp.QuoteMeta(name) + `(/|$)`)
	}
	return found
}

// calledPure are the folders that a page or a package comment calls pure, and who does.
func calledPure(t *testing.T) map[string]string {
	t.Helper()
	called := map[string]string{}
	_, tree, _ := strings.Cut(pages(t)["docs/architecture.md"], "## Where things are")
	tree = fence.FindString(tree)
	_, tree, _ = strings.Cut(tree, "\ninternal/\n")
	above := []string{"internal"}
	for _, line := range treeLine.FindAllStringSubmatch(tree, -1) {
		above = append(above[:min(len(line[1])/2, len(above))], line[2])
		if strings.HasPrefix(line[3], "pure: ") {
			called[path.Join(above...)] = "docs/architecture.md"
		}
	}
	for _, row := range packageRow.FindAllStringSubmatch(pages(t)["docs/monitor.md"], -1) {
		called[row[1]] = "docs/monitor.md"
	}
	for file, source := range sources(t) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if saysPure.MatchString(packageComment(parsed)) {
			called[path.Dir(file)] = file
		}
	}
	return called
}

// sources are the Go files below internal that are no tests.
func sources(t *testing.T) map[string][]byte {
	t.Helper()
	all := filesOf(t, func(name string) bool { return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") })
	maps.DeleteFunc(all, func(file string, _ []byte) bool { return !strings.HasPrefix(file, "internal/") })
	return all
}

// packageComment is a package comment in one line.
func packageComment(file *ast.File) string { return strings.Join(strings.Fields(file.Doc.Text()), " ") }

// TestWhatIsCalledPureIsHeldPure: the linter lets no package that somebody calls pure import a client or a logger, and lists none
// that there is not.
func TestWhatIsCalledPureIsHeldPure(t *testing.T) {
	list, called := pureFolders(t), calledPure(t)
	if len(list) < 10 || len(called) < 20 {
		t.Fatalf("%d folders are in the list, and %d are called pure", len(list), len(called))
	}
	for folder, who := range called {
		held := false
		for _, pattern := range list {
			held = held || pattern.MatchString(folder)
		}
		if !held {
			t.Errorf("%s calls %s pure, and the rule pure in .golangci.yml does not have it", who, folder)
		}
	}
	all := sources(t)
	for name, pattern := range list {
		there := false
		for file := range all {
			there = there || pattern.MatchString(path.Dir(file))
		}
		if !there {
			t.Errorf("the rule pure in .golangci.yml lists %s, which is not there", name)
		}
	}
}
