package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode/utf8"
)

// wide reports whether a line has more than 140 columns. Addresses, markers, nolints and directives cannot be wrapped.
func wide(line string) bool {
	line = strings.TrimRight(line, "\r\n")
	return utf8.RuneCountInString(line)+3*strings.Count(line, "\t") > 140 && !unbroken.MatchString(line)
}

// declaration counts the fields of structs, and notes the methods of types.
func (f *findings) declaration(folder string, declaration ast.Decl) {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if declaration.Recv == nil {
			return
		}
		k := key{"methods", folder + receiver(declaration.Recv.List[0].Type)}
		if f.methods[k] == nil {
			f.methods[k] = map[string]bool{}
		}
		f.methods[k][declaration.Name.Name] = true
	case *ast.GenDecl:
		for _, spec := range declaration.Specs {
			defined, isType := spec.(*ast.TypeSpec)
			if !isType {
				continue
			}
			if structure, isStruct := defined.Type.(*ast.StructType); isStruct {
				f.figures[key{"fields", folder + defined.Name.Name}] = structure.Fields.NumFields()
			}
		}
	}
}

// receiver is the name of the type of a receiver: T of T, *T, T[P] and *T[P, Q].
func receiver(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.Ident:
		return expression.Name
	case *ast.StarExpr:
		return receiver(expression.X)
	case *ast.IndexExpr:
		return receiver(expression.X)
	case *ast.IndexListExpr:
		return receiver(expression.X)
	case *ast.ParenExpr:
		return receiver(expression.X)
	}
	return "?"
}

// compare counts how the list of a folder differs from its files. Three files need no list; doc.go itself need not be in it.
func (f *findings) compare(folder string) {
	k, files, listed := key{"list", folder}, f.files[folder], f.listed[folder]
	f.figures[k] = 0
	if len(files) <= 3 && len(listed) == 0 {
		return
	}
	for i, name := range listed {
		if !slices.Contains(files, name) || slices.Contains(listed[:i], name) {
			f.figures[k]++
			f.details[k] += fmt.Sprintf("; %s is named, but not there, or named twice", name)
		}
	}
	for _, name := range files {
		if !slices.Contains(listed, name) && name != "doc.go" {
			f.figures[k]++
			f.details[k] += fmt.Sprintf("; %s is not named", name)
		}
	}
}

// linter complains of a comment that switches off a linter which does not run: it does nothing, and nolintlint does not see it.
func (f *findings) linter(at token.Position, comment string) {
	found := nolint.FindStringSubmatch(comment)
	if found == nil {
		return
	}
	for name := range strings.SplitSeq(found[1], ",") {
		if name = strings.TrimSpace(name); !slices.Contains(f.linters, name) {
			f.problems = append(f.problems,
				fmt.Sprintf("%s:%d: nolint of %s, which .golangci.yml does not run: delete it", at.Filename, at.Line, name))
		}
	}
}
