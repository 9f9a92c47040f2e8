package supervisor

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// filter chooses among the kinds that have a definition. See Options.
type filter struct {
	include, exclude []string
}

// maxPatterns bounds how many patterns are compared with each kind.
const maxPatterns = 1000

// newFilter returns an error that names a pattern that is none.
func newFilter(include, exclude []string) (filter, error) {
	if len(include)+len(exclude) > maxPatterns {
		return filter{}, fmt.Errorf("%d patterns of kinds: no more than %d are allowed", len(include)+len(exclude), maxPatterns)
	}
	for _, list := range [][]string{include, exclude} {
		for _, pattern := range list {
			if pattern == "" || strings.Trim(pattern, "abcdefghijklmnopqrstuvwxyz0123456789-.*") != "" {
				return filter{}, fmt.Errorf("%q does not select kinds: write a group or resource.group in small letters, with * for any characters", pattern)
			}
		}
	}
	return filter{include: include, exclude: exclude}, nil
}

// refuses returns why a kind is not followed, empty when it is.
func (f filter) refuses(kind schema.GroupResource) string {
	for _, pattern := range f.exclude {
		if matches(pattern, kind) {
			return "excluded by the pattern " + pattern
		}
	}
	if len(f.include) == 0 {
		return ""
	}
	for _, pattern := range f.include {
		if matches(pattern, kind) {
			return ""
		}
	}
	return "not among the included patterns"
}

// matches compares a pattern with the group and with resource.group. No name has a slash, so * stands for any characters.
func matches(pattern string, kind schema.GroupResource) bool {
	byGroup, _ := path.Match(pattern, kind.Group)
	byName, _ := path.Match(pattern, kind.String())
	return byGroup || byName
}
