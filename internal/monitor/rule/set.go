package rule

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Set are rules, found by the kind that they are about: an object costs only those. It is safe for concurrent use.
type Set struct {
	// active are the rules that are not suspended, by their names, and byUID all of them.
	active []*Rule
	byUID  map[types.UID]*Rule
	// byKind remembers what was found.
	byKind sync.Map
}

// NewSet makes a set. Of two rules with the same UID the later counts.
func NewSet(rules []*Rule) *Set {
	s := &Set{byUID: make(map[types.UID]*Rule, len(rules))}
	for _, r := range rules {
		s.byUID[r.UID] = r
	}
	for _, r := range s.byUID {
		if !r.Suspended {
			s.active = append(s.active, r)
		}
	}
	slices.SortFunc(s.active, func(a, b *Rule) int {
		if order := strings.Compare(a.Name, b.Name); order != 0 {
			return order
		}
		return strings.Compare(string(a.UID), string(b.UID))
	})
	return s
}

// For returns the rules about a kind that are not suspended, by their names.
func (s *Set) For(group, kind string) []*Rule {
	key := schema.GroupKind{Group: group, Kind: kind}
	if found, ok := s.byKind.Load(key); ok {
		return found.([]*Rule)
	}
	var rules []*Rule
	for _, r := range s.active {
		if r.IsAbout(group, kind) {
			rules = append(rules, r)
		}
	}
	s.byKind.Store(key, rules)
	return rules
}

// forget forgets what was found for a kind: it may have gone for good.
func (s *Set) forget(group, kind string) { s.byKind.Delete(schema.GroupKind{Group: group, Kind: kind}) }

// find returns a rule that is not suspended.
func (s *Set) find(uid types.UID) *Rule {
	if r := s.byUID[uid]; r != nil && !r.Suspended {
		return r
	}
	return nil
}
