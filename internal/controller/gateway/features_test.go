package gateway

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// constantsIn are the constants of package features in lists of a file, by the names of the lists.
func constantsIn(t *testing.T, file string, lists ...string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range lists {
		object := parsed.Scope.Lookup(name)
		if object == nil {
			t.Fatalf("%s has no list %s", file, name)
		}
		ast.Inspect(object.Decl.(*ast.ValueSpec), func(n ast.Node) bool {
			if constant, is := n.(*ast.SelectorExpr); is && constant.Sel.Name != "FeatureName" {
				names = append(names, constant.Sel.Name)
			}
			return true
		})
	}
	slices.Sort(names)
	return names
}

// What the status of a class claims is what the conformance suite tests, which is a module of its own.
func TestAClassClaimsWhatTheConformanceSuiteTests(t *testing.T) {
	tested := constantsIn(t, filepath.Join("..", "..", "..", "test", "conformance", "features.go"), "core", "supported")
	if diff := cmp.Diff(tested, constantsIn(t, "features.go", "supported")); diff != "" {
		t.Errorf("-tested +claimed:\n%s", diff)
	}
}
