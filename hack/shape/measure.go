package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// findings are what was counted in the .go files of all modules, under whatever build tag. Only nolints are looked for in tests
// (_test.go); generated files and folders called testdata do not count at all.
//
//	methods  different names of the functions whose receiver is the type; interfaces have none
//	fields   of a struct with a name of its own, embedded ones too; what is within a field does not count
//	files    of a folder, api aside
//	lines    of a folder's files, from the package clause or the imports on, comments and empty ones too; api aside
//	width    lines of a file wider than 140 columns, a tab is 4; without those that nothing can wrap (see wide)
//	list     files that the list in the package comment lacks, and those that it names and that are not there
type findings struct {
	figures  map[key]int
	details  map[key]string // what a complaint says further
	problems []string
	linters  []string // those that run
	listed   map[string][]string
	files    map[string][]string
	methods  map[key]map[string]bool
}

var (
	skipped  = regexp.MustCompile(`^(\.\w.*|bin|dist|node_modules|testdata|vendor)$`)
	unbroken = regexp.MustCompile(`://|//\s?\+kubebuilder|//nolint|^//go:`)
	entry    = regexp.MustCompile(`(?m)^//\t(\w+\.go)(?:\s|$)`)
	nolint   = regexp.MustCompile(`^//\s?nolint:([\w-]+(?:\s*,\s*[\w-]+)*)`)
)

// measure counts everything below a folder.
func measure(root string) (*findings, error) {
	f := &findings{
		figures: map[key]int{}, details: map[key]string{}, listed: map[string][]string{}, files: map[string][]string{},
		methods: map[key]map[string]bool{},
	}
	var config struct {
		Linters, Formatters struct{ Enable []string }
	}
	raw, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf(".golangci.yml: %w", err)
	}
	f.linters = slices.Concat(config.Linters.Enable, config.Formatters.Enable)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && skipped.MatchString(d.Name()) {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return f.file(filepath.ToSlash(name), string(raw))
	})
	for k, names := range f.methods {
		f.figures[k] = len(names)
	}
	for folder := range f.files {
		f.compare(folder)
	}
	return f, err
}

// body is where a file begins to say something of its own: imports grow where a package is divided.
func body(file *ast.File) token.Pos {
	from := file.Package
	for _, declaration := range file.Decls {
		if imports, is := declaration.(*ast.GenDecl); is && imports.Tok == token.IMPORT {
			from = imports.End()
		}
	}
	return from
}

// file counts what is in one file.
func (f *findings) file(name, text string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			f.linter(set.Position(comment.Pos()), comment.Text)
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	folder, base := filepath.Split(name)
	folder = filepath.Clean(folder)
	f.files[folder] = append(f.files[folder], base)
	if !strings.HasPrefix(folder, "api/") { // a version of an API is one package, however many kinds it has
		f.figures[key{"files", folder}]++
		f.figures[key{"lines", folder}] += strings.Count(text[set.Position(body(file)).Offset:], "\n")
	}
	f.figures[key{"width", name}] = 0
	number := 0
	for line := range strings.Lines(text) {
		if number++; wide(line) {
			f.figures[key{"width", name}]++
			f.details[key{"width", name}] += fmt.Sprintf("; line %d", number)
		}
	}
	for _, declaration := range file.Decls {
		f.declaration(folder+".", declaration)
	}
	if file.Doc != nil {
		for _, comment := range file.Doc.List {
			for _, found := range entry.FindAllStringSubmatch(comment.Text, -1) {
				f.listed[folder] = append(f.listed[folder], found[1])
			}
		}
	}
	return nil
}
