// Package selection chooses kinds by patterns. The monitor asks it which kinds to follow, and the operator which kinds to let
// the monitor read, so both choose the same.
package selection

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds chooses among the kinds that have a definition. The zero value chooses all.
type Kinds struct {
	include, exclude []string
}

// maxPatterns bounds how many patterns are compared with each kind.
const maxPatterns = 1000

// New returns what patterns choose. Each is a pattern of a group, such as *.crossplane.io, or of a resource with its group, such
// as widgets.example.com. In a pattern * stands for any characters, dots too. A kind is chosen when a pattern of include matches,
// or when there is none, and no pattern of exclude matches. There are at most 1,000 patterns. The error names a pattern that is
// none.
func New(include, exclude []string) (Kinds, error) {
	if len(include)+len(exclude) > maxPatterns {
		return Kinds{}, fmt.Errorf("%d patterns of kinds: no more than %d are allowed", len(include)+len(exclude), maxPatterns)
	}
	for _, list := range [][]string{include, exclude} {
		for _, pattern := range list {
			if pattern == "" || strings.Trim(pattern, "abcdefghijklmnopqrstuvwxyz0123456789-.*") != "" {
				return Kinds{}, fmt.Errorf(
					"%q does not select kinds: write a group or resource.group in small letters, with * for any characters", pattern,
				)
			}
		}
	}
	return Kinds{include: include, exclude: exclude}, nil
}

// Refuses returns why a kind is not chosen, empty when it is.
func (k Kinds) Refuses(kind schema.GroupResource) string {
	for _, pattern := range k.exclude {
		if matches(pattern, kind) {
			return "excluded by the pattern " + pattern
		}
	}
	if len(k.include) == 0 {
		return ""
	}
	for _, pattern := range k.include {
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
