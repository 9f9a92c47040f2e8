package engine

import (
	"path"
	"strings"
)

// filter decides which paths belong to a snapshot.
type filter struct {
	paths   []string // clean, relative; empty: all
	exclude []pattern
}

// pattern is a parsed element of SnapshotOptions.Exclude.
type pattern struct {
	elements    []string
	foldersOnly bool
}

// newFilter parses the paths and patterns of SnapshotOptions.
func newFilter(paths, exclude []string) (*filter, error) {
	const doing = "check what to back up"
	f := &filter{}
	for _, p := range paths {
		clean := strings.TrimPrefix(path.Clean("/"+p), "/")
		if p == "" || clean == "" {
			return nil, fail(KindInvalid, doing, "the path %q names nothing in the source", p)
		}
		f.paths = append(f.paths, clean)
	}
	for _, text := range exclude {
		p, err := newPattern(text)
		if err != nil {
			return nil, fail(KindInvalid, doing, "the pattern %q: %w", text, err)
		}
		f.exclude = append(f.exclude, p)
	}
	return f, nil
}

func newPattern(text string) (pattern, error) {
	p := pattern{foldersOnly: strings.HasSuffix(text, "/")}
	trimmed := strings.TrimSuffix(text, "/")
	anchored := strings.Contains(trimmed, "/")
	p.elements = strings.Split(strings.TrimPrefix(trimmed, "/"), "/")
	for _, element := range p.elements {
		if element == "" {
			return pattern{}, path.ErrBadPattern
		}
		if _, err := path.Match(element, "x"); err != nil {
			return pattern{}, err
		}
	}
	if !anchored {
		p.elements = append([]string{"**"}, p.elements...)
	}
	return p, nil
}

// wants reports whether a path, relative to the source, belongs to the snapshot. A folder does too when something below it may.
func (f *filter) wants(relative string, folder bool) bool {
	if !f.named(relative, folder) {
		return false
	}
	elements := strings.Split(relative, "/")
	for _, p := range f.exclude {
		if (folder || !p.foldersOnly) && matches(p.elements, elements) {
			return false
		}
	}
	return true
}

// named reports whether a path is one of those that were asked for, below one, or above one.
func (f *filter) named(relative string, folder bool) bool {
	if len(f.paths) == 0 {
		return true
	}
	for _, p := range f.paths {
		if relative == p || strings.HasPrefix(relative, p+"/") || (folder && strings.HasPrefix(p, relative+"/")) {
			return true
		}
	}
	return false
}

// matches compares element by element; ** stands for any number of them.
func matches(pattern, elements []string) bool {
	if len(pattern) == 0 {
		return len(elements) == 0
	}
	if pattern[0] == "**" {
		for skipped := range len(elements) + 1 {
			if matches(pattern[1:], elements[skipped:]) {
				return true
			}
		}
		return false
	}
	if len(elements) == 0 {
		return false
	}
	matched, err := path.Match(pattern[0], elements[0])
	return err == nil && matched && matches(pattern[1:], elements[1:])
}
