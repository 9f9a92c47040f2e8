package main

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// code is the Go code of the repository, by folder. Folders and files are named from the root.
type code struct {
	files   fs.FS
	module  string // the path of the main module; those below are named after their folders
	folders map[string]*folder
	modules []string        // the folders of the modules below the main one
	changed map[string]bool // files that have changed, and the folders above them; they may be deleted
}

// folder is one that has Go files.
type folder struct {
	path    string
	module  string // the folder of its module, "." for the main one
	imports []string
	reads   []string // files and folders outside that its code names
	tests   []testFile
}

type testFile struct {
	path           string
	when           constraint.Expr // nil: always
	imports, reads []string
	tests, fuzzes  bool
}

// builtWith reports whether a file is built with some tags, on Linux.
func (f testFile) builtWith(tags ...string) bool {
	always := []string{"linux", "unix", "amd64", "cgo", "race", "testing"}
	return f.when == nil || f.when.Eval(func(tag string) bool { return slices.Contains(tags, tag) || slices.Contains(always, tag) })
}

// asksFor reports whether a file is built with a tag, and not without it.
func (f testFile) asksFor(tag string) bool { return f.builtWith(tag) && !f.builtWith() }

// readCode reads the Go files among names. changed are the files that differ from the base: who reads one that is deleted
// reads it all the same.
func readCode(files fs.FS, names, changed []string) (*code, error) {
	raw, err := fs.ReadFile(files, "go.mod")
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	c := &code{files: files, module: strings.TrimPrefix(line, "module "), folders: map[string]*folder{}, changed: map[string]bool{}}
	for _, name := range changed {
		for ; name != "."; name = path.Dir(name) {
			c.changed[name] = true
		}
	}
	for _, name := range names {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			c.modules = append(c.modules, path.Dir(name))
		}
	}
	slices.SortFunc(c.modules, func(a, b string) int { return len(b) - len(a) }) // the innermost first
	for _, name := range names {
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "/testdata/") {
			if err := c.readFile(name); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (c *code) readFile(name string) error {
	source, err := fs.ReadFile(c.files, name)
	if err != nil {
		return nil // it is deleted, and not yet committed
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(name)
	f := c.folders[dir]
	if f == nil {
		f = &folder{path: dir, module: c.moduleOf(dir)}
		c.folders[dir] = f
	}
	imports, reads := c.importsOf(file), c.readsOf(dir, file)
	if !strings.HasSuffix(name, "_test.go") {
		f.imports, f.reads = append(f.imports, imports...), append(f.reads, reads...)
		return nil
	}
	test := testFile{path: name, imports: imports, reads: reads, when: constraintOf(file)}
	for _, declared := range file.Decls {
		if function, ok := declared.(*ast.FuncDecl); ok && function.Recv == nil {
			name := function.Name.Name
			test.fuzzes = test.fuzzes || strings.HasPrefix(name, "Fuzz")
			isTest := strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example")
			test.tests = test.tests || isTest && name != "TestMain"
		}
	}
	f.tests = append(f.tests, test)
	return nil
}

func (c *code) moduleOf(dir string) string {
	for _, module := range c.modules {
		if below(dir, module) {
			return module
		}
	}
	return "."
}

func constraintOf(file *ast.File) constraint.Expr {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if comment.Pos() < file.Package && constraint.IsGoBuild(comment.Text) {
				if when, err := constraint.Parse(comment.Text); err == nil {
					return when
				}
			}
		}
	}
	return nil
}

// importsOf returns the folders of the packages of the repository that a file imports.
func (c *code) importsOf(file *ast.File) []string {
	var folders []string
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if folder, ours := strings.CutPrefix(imported, c.module+"/"); ours {
			folders = append(folders, folder)
		}
	}
	return folders
}

// readsOf returns the files and folders of the repository that a file names, outside of its own folder: in a text that
// begins with "../", in filepath.Join("..", ...), and in filepath.Join(root, "config", "crd").
func (c *code) readsOf(dir string, file *ast.File) []string {
	var reads []string
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); err == nil && strings.HasPrefix(text, "../") {
				reads = append(reads, c.named(path.Join(dir, text), dir)...)
			}
		case *ast.CallExpr:
			called, ok := node.Fun.(*ast.SelectorExpr)
			if !ok || called.Sel.Name != "Join" || len(node.Args) < 2 {
				return true
			}
			first, texts := leading(node.Args)
			switch {
			case first && texts[0] == "..":
				reads = append(reads, c.named(path.Join(dir, path.Join(texts...)), dir)...)
			case !first && len(texts) > 1 && c.exists(path.Join(texts...)):
				reads = append(reads, path.Join(texts...))
			}
		}
		return true
	})
	return reads
}

// leading returns the texts among the arguments up to the first that is none, leaving out the first argument where that is
// none.
func leading(args []ast.Expr) (first bool, texts []string) {
	for i, arg := range args {
		literal, ok := arg.(*ast.BasicLit)
		if ok {
			text, _ := strconv.Unquote(literal.Value)
			texts = append(texts, text)
			first = first || i == 0
		} else if i > 0 {
			break
		}
	}
	return first, texts
}

// named returns the file or folder outside of dir that a name means, none where there is no such thing. Of a pattern, or the
// begin of a name, it is the folder. "." is the whole repository.
func (c *code) named(name, dir string) []string {
	if begin, _, pattern := strings.Cut(name, "*"); pattern {
		name = path.Dir(begin + "x")
	}
	if name != "." && below(name, dir) {
		return nil
	}
	if c.exists(name) {
		return []string{name}
	}
	const shortest = 4 // of a begin; shorter ones are texts that only look like one
	folder, begin := path.Split(name)
	if folder != "" && len(begin) >= shortest && c.begins(name) {
		return []string{path.Clean(folder)}
	}
	return nil
}

// begins reports whether the name of a file or folder begins so.
func (c *code) begins(begin string) bool {
	found, err := fs.Glob(c.files, begin+"*")
	if err == nil && len(found) > 0 {
		return true
	}
	for name := range c.changed {
		if strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

// exists reports whether there is a file or folder of this name, or was one.
func (c *code) exists(name string) bool {
	_, err := fs.Stat(c.files, name)
	return fs.ValidPath(name) && (err == nil || c.changed[name])
}

// below reports whether a file or folder is in a folder, or is it.
func below(name, folder string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}
