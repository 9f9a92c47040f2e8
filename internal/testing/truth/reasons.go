package truth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Reason is a condition reason of the API.
type Reason struct {
	// Constant is the name that users program against.
	Constant string
	// Sentence is what its comment says.
	Sentence string
	// Kind is the kind that has it, in lower case, or empty for one that all may have.
	Kind string
}

// Reasons lists the condition reasons that the API defines, by value.
func Reasons() (map[string]Reason, error) { return once() }

// once reads the source, a single time: constants cannot be listed at run time.
var once = sync.OnceValues(read)

func read() (map[string]Reason, error) {
	_, here, _, _ := runtime.Caller(0)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(here), "..", "..", "..", "api", "v1alpha1", "*conditions.go"))
	if err != nil {
		return nil, err
	}
	reasons := map[string]Reason{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		kind, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), "conditions.go"), "_")
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
				value, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				reasons[value] = Reason{Constant: spec.Names[0].Name, Sentence: spec.Doc.Text(), Kind: kind}
			}
			return true
		})
	}
	return reasons, nil
}
