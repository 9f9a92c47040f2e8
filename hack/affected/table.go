package main

import (
	"fmt"
	"slices"
	"strings"
)

// table is suites.txt.
type table struct {
	suites []*suite
	known  []string            // whoever names these files is affected by a change of them, and nobody else
	all    []string            // a change of these files affects everything
	reads  map[string][]string // what the code of a folder reads, where the sources do not show it
}

// suite is a target of make. Its tests are those in files with its build tag.
type suite struct {
	name    string
	tag     string // empty: packages are chosen one by one
	fuzz    bool   // only of packages with fuzz targets
	uses    []string
	without []string // linked or read, and without effect on the suite
	parts   []part
}

// part is a part of a suite that a variable of make picks. What is in the folders of some parts counts for these alone.
type part struct {
	variable, value string
	folders         []string
}

func readTable(text string) (*table, error) {
	t := &table{reads: map[string][]string{}}
	for number, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := t.row(words[0], words[1:]); err != nil {
			return nil, fmt.Errorf("suites.txt:%d: %w", number+1, err)
		}
	}
	return t, nil
}

func (t *table) row(word string, rest []string) error {
	if len(rest) == 0 {
		return fmt.Errorf("%s says nothing", word)
	}
	switch word {
	case "known":
		t.known = append(t.known, rest...)
		return nil
	case "all":
		t.all = append(t.all, rest...)
		return nil
	case "reads":
		t.reads[rest[0]] = append(t.reads[rest[0]], rest[1:]...)
		return nil
	case "suite":
		s := &suite{name: rest[0]}
		for _, option := range rest[1:] {
			s.fuzz = s.fuzz || option == "fuzz"
			if tag, ok := strings.CutPrefix(option, "tag="); ok {
				s.tag = tag
			}
		}
		t.suites = append(t.suites, s)
		return nil
	}
	i := slices.IndexFunc(t.suites, func(s *suite) bool { return s.name == rest[0] })
	if i < 0 {
		return fmt.Errorf("%s: there is no suite %s above", word, rest[0])
	}
	s := t.suites[i]
	switch word {
	case "uses":
		s.uses = append(s.uses, rest[1:]...)
	case "without":
		s.without = append(s.without, rest[1:]...)
	case "part":
		if len(rest) < 3 {
			return fmt.Errorf("part: %s needs a variable and folders", rest[0])
		}
		variable, value, _ := strings.Cut(rest[1], "=")
		same := func(p part) bool { return p.variable == variable && p.value == value }
		if i := slices.IndexFunc(s.parts, same); i >= 0 {
			s.parts[i].folders = append(s.parts[i].folders, rest[2:]...)
			break
		}
		s.parts = append(s.parts, part{variable: variable, value: value, folders: rest[2:]})
	default:
		return fmt.Errorf("there are no rows %q", word)
	}
	return nil
}

// knows reports whether the table says who is affected by a file that is in no package.
func (t *table) knows(file string) bool {
	return underAny(file, t.known) || slices.ContainsFunc(t.suites, func(s *suite) bool { return underAny(file, s.uses) })
}

// minds reports whether a changed file counts for a part of the suite. Without parts there is one, nil.
func (s *suite) minds(file string, p *part) bool {
	if underAny(file, s.without) {
		return false
	}
	if p == nil || underAny(file, p.folders) {
		return true
	}
	return !slices.ContainsFunc(s.parts, func(other part) bool { return underAny(file, other.folders) })
}

func underAny(file string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return below(file, folder) })
}
