package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"path"
	"slices"
	"strings"
)

// shares is into how many shares all is divided that is not affected. One of them runs, so five draws find what any of it
// would.
const shares = 5

// reach is how far a set of changed files goes.
type reach struct {
	code    *code
	table   *table
	changed []string
	linked  map[string]bool // the folders whose package, or something that is linked into it, has changed
}

func (c *code) reach(t *table, changed []string) *reach {
	r := &reach{code: c, table: t, changed: changed, linked: map[string]bool{}}
	for _, file := range changed {
		home := c.home(file)
		for _, f := range c.folders {
			if c.requires(file) && f.module == path.Dir(file) {
				r.linked[f.path] = true
			}
		}
		if home != "" && !ofTests(file) {
			r.linked[home] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, f := range c.folders {
			if r.linked[f.path] || !r.links(f.imports) && !r.touches(f.reads) && !r.touches(t.reads[f.path]) {
				continue
			}
			r.linked[f.path], grown = true, true
		}
	}
	return r
}

// requires reports whether a file says what a module below the main one requires.
func (c *code) requires(file string) bool {
	base := path.Base(file)
	return (base == "go.mod" || base == "go.sum") && slices.Contains(c.modules, path.Dir(file))
}

// home returns the folder of the package that a file belongs to: its own, or for what is not Go the next above with Go files.
func (c *code) home(file string) string {
	dir := path.Dir(file)
	if strings.HasSuffix(file, ".go") && !strings.Contains(file, "/testdata/") || c.requires(file) {
		return dir
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if c.folders[dir] != nil {
			return dir
		}
	}
	return ""
}

// ofTests reports whether a file is there for the tests of its folder alone.
func ofTests(file string) bool {
	return strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/")
}

func (r *reach) links(folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return r.linked[folder] })
}

// touches reports whether a file or folder among those has changed, or is a package that has.
func (r *reach) touches(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return r.linked[name] || slices.ContainsFunc(r.changed, func(file string) bool { return below(file, name) })
	})
}

// tests reports whether the tests of a folder may end in another way, built with some tags. A test of a suite is in a file
// that asks for the suite's tag; what the others in its folder read does not matter.
func (r *reach) tests(f *folder, only string, tags ...string) bool {
	if r.linked[f.path] {
		return true
	}
	for _, test := range f.tests {
		if !test.builtWith(tags...) {
			continue
		}
		reads := test.reads
		if only != "" && !test.asksFor(only) {
			reads = nil
		}
		if slices.Contains(r.changed, test.path) || r.links(test.imports) || r.touches(reads) {
			return true
		}
	}
	return slices.ContainsFunc(r.changed, func(file string) bool {
		isThere := slices.ContainsFunc(f.tests, func(test testFile) bool { return test.path == file })
		return r.code.home(file) == f.path && ofTests(file) && !isThere
	})
}

// unit is what can be left out: a package, a module, a suite or a part of one.
type unit struct {
	name     string
	module   bool
	share    uint32
	affected bool
	chosen   bool
}

type plan struct {
	runs []choice
	all  bool
	why  []string // files that affect everything
	draw int
}

// choice is a suite and all that it has.
type choice struct {
	suite *suite
	units []*unit
}

// choose says what runs after some files have changed.
func choose(c *code, t *table, changed []string, all bool, draw int) *plan {
	p := &plan{all: all, draw: draw}
	for _, file := range changed {
		if underAny(file, t.all) || c.home(file) == "" && !t.knows(file) {
			p.all, p.why = true, append(p.why, file)
		}
	}
	whole, dealt := c.reach(t, changed), 0
	for _, s := range t.suites {
		r := choice{suite: s}
		if s.tag == "" {
			r.units = packageUnits(c, s, whole)
		} else {
			r.units = suiteUnits(c, t, s, changed, dealt)
			dealt += len(r.units)
		}
		for _, u := range r.units {
			u.chosen = p.all || u.affected || int(u.share%shares) == draw
		}
		p.runs = append(p.runs, r)
	}
	return p
}

// suiteUnits returns a unit for each part of a suite, or one. They cost much, so shares get them in turn.
func suiteUnits(c *code, t *table, s *suite, changed []string, dealt int) []*unit {
	if len(s.parts) == 0 {
		return []*unit{{name: s.name, share: uint32(dealt), affected: s.affected(c, t, nil, changed)}}
	}
	var units []*unit
	for i := range s.parts {
		part := &s.parts[i]
		units = append(units, &unit{name: part.value, share: uint32(dealt + i), affected: s.affected(c, t, part, changed)})
	}
	return units
}

// packageUnits returns a unit for each package of the main module that has tests, and for each other module.
func packageUnits(c *code, s *suite, r *reach) []*unit {
	byName := map[string]*unit{}
	for _, f := range c.folders {
		tags := []string{"apitest"}
		if f.module != "." {
			tags = nil
		}
		if !f.hasTests(s.fuzz, tags...) {
			continue
		}
		name := f.path
		if f.module != "." && !s.fuzz {
			name = f.module
		}
		u := byName[name]
		if u == nil {
			u = &unit{name: name, module: f.module != "." && !s.fuzz, share: hash(name)}
			byName[name] = u
		}
		u.affected = u.affected || r.tests(f, "", tags...)
	}
	var units []*unit
	for _, u := range byName {
		units = append(units, u)
	}
	// The controllers take longest, so they begin.
	late := func(u *unit) int { return map[bool]int{true: 0, false: 1}[below(u.name, "internal/controller")] }
	slices.SortFunc(units, func(a, b *unit) int {
		if late(a) != late(b) {
			return late(a) - late(b)
		}
		return strings.Compare(a.name, b.name)
	})
	return units
}

func (s *suite) affected(c *code, t *table, p *part, changed []string) bool {
	var minded []string
	for _, file := range changed {
		if s.minds(file, p) {
			minded = append(minded, file)
		}
	}
	r := c.reach(t, minded)
	for _, f := range c.folders {
		isOne := slices.ContainsFunc(f.tests, func(test testFile) bool { return test.asksFor(s.tag) })
		if isOne && r.tests(f, s.tag, s.tag) {
			return true
		}
	}
	return r.touches(s.uses)
}

// hasTests reports whether a folder has tests, or fuzz targets, that are built with some tags.
func (f *folder) hasTests(fuzz bool, tags ...string) bool {
	return slices.ContainsFunc(f.tests, func(test testFile) bool {
		return test.builtWith(tags...) && test.tests && (test.fuzzes || !fuzz)
	})
}

// touched returns the packages of the main module that have changed themselves, all or only those with tests.
func (c *code) touched(changed []string, tested bool) []string {
	var folders []string
	for _, file := range changed {
		f := c.folders[c.home(file)]
		if f != nil && f.module == "." && (!tested || f.hasTests(false, "apitest")) {
			folders = append(folders, f.path)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// String returns a line for each suite that runs: the target and the variables, with tabs between them.
func (p *plan) String() string {
	var text strings.Builder
	for _, r := range p.runs {
		if words := r.words(); len(words) > 0 {
			text.WriteString(strings.Join(words, "\t") + "\n")
		}
	}
	return text.String()
}

// words returns the target of a suite that runs, and what picks those of its units that are chosen, unless that is all.
func (r choice) words() []string {
	var chosen, modules []string
	for _, u := range r.units {
		switch {
		case !u.chosen:
		case u.module:
			modules = append(modules, u.name)
		default:
			chosen = append(chosen, u.name)
		}
	}
	words := []string{r.suite.name}
	switch {
	case len(chosen)+len(modules) == 0:
		return nil
	case len(chosen)+len(modules) == len(r.units):
		return words
	case r.suite.tag != "":
		return append(words, r.suite.parts[0].variable+"="+strings.Join(chosen, ","))
	}
	for i := range chosen {
		chosen[i] = "./" + chosen[i]
	}
	words = append(words, "PACKAGES="+strings.Join(chosen, " "))
	if !r.suite.fuzz {
		words = append(words, "MODULES="+strings.Join(modules, " "))
	}
	return words
}

// explain says what runs and why.
func (p *plan) explain(out io.Writer, why string) {
	fmt.Fprintln(out, "affected:", why)
	if len(p.why) > 0 {
		fmt.Fprintln(out, "affected: everything runs, because of", strings.Join(p.why, ", "))
	}
	if p.all {
		return
	}
	fmt.Fprintf(out, "affected: of what is not affected a fifth runs: DRAW=%d; DRAW=0 to DRAW=4 are all of it\n", p.draw)
	for _, r := range p.runs {
		var affected []string
		drawn := 0
		for _, u := range r.units {
			if u.affected {
				affected = append(affected, u.name)
			} else if u.chosen {
				drawn++
			}
		}
		note := ""
		if len(affected) > 0 && len(affected) < len(r.units) && len(affected) < 5 {
			note = ": " + strings.Join(affected, ", ")
		}
		fmt.Fprintf(out, "affected: %-22s of %3d, %3d are affected and %3d drawn%s\n",
			r.suite.name, len(r.units), len(affected), drawn, note)
	}
}

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32()
}
