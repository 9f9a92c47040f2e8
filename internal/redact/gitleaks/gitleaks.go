// Package gitleaks finds secrets by the rules of gitleaks (https://github.com/gitleaks/gitleaks): what tokens and keys of well-known
// services look like. rules.go is made of the version that hack/tools/secretrules pins.
//
// A rule is tried only around its keywords, so a text without one costs one pass over it.
package gitleaks

import (
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"github.com/slipway-dev/slipway/internal/redact/match"
)

//go:generate go run -C ../../../hack/tools/secretrules . -output ../../../internal/redact/gitleaks/rules.go

// Rule is what secrets of one kind look like.
type Rule struct {
	// ID is the rule's name in gitleaks.
	ID string
	// Keywords are in small letters. A text without any of them has no such secret.
	Keywords []string
	// expression matches a secret with what is around it. group is the part that is the secret, 0 for the first one that matched.
	expression string
	group      int
	// entropy is the least entropy of a secret, in bits for a byte.
	entropy float64
	// allowed are expressions of what is no secret, and stopWords are words of what is none.
	allowed   []string
	stopWords []string
}

const (
	// maxReach bounds how far around a keyword a rule is tried.
	maxReach = 2048
	// budgetFactor and budgetLeast bound how many bytes are given to expressions for one text: so many times its length.
	budgetFactor = 12
	budgetLeast  = 64 << 10
)

// compiled is a rule that is ready to be tried.
type compiled struct {
	expression *regexp.Regexp
	allowed    []*regexp.Regexp
	// reach is how long a match is at most.
	reach int
}

// table has what all texts are looked through with. Expressions are compiled when they are first needed.
type table struct {
	keywords *match.Set
	// of are the numbers of the rules with a keyword.
	of [][]int
	// ready compiles a rule once.
	ready []func() compiled
}

var theTable = sync.OnceValue(func() *table {
	var words []string
	for _, rule := range rules {
		words = append(words, rule.Keywords...)
	}
	t := &table{keywords: match.NewFold(words)}
	t.of = make([][]int, len(t.keywords.Words()))
	for i, rule := range rules {
		for _, keyword := range rule.Keywords {
			at, _ := slices.BinarySearch(t.keywords.Words(), keyword)
			t.of[at] = append(t.of[at], i)
		}
		t.ready = append(t.ready, sync.OnceValue(rule.compile))
	}
	return t
})

func (r Rule) compile() compiled {
	c := compiled{expression: regexp.MustCompile(r.expression), reach: maxReach}
	if parsed, err := syntax.Parse(r.expression, syntax.Perl); err == nil {
		c.reach = min(longest(parsed), maxReach)
	}
	for _, allowed := range r.allowed {
		c.allowed = append(c.allowed, regexp.MustCompile(allowed))
	}
	return c
}

// longest is how many bytes an expression matches at most, maxReach if there is no end.
func longest(e *syntax.Regexp) int {
	switch e.Op {
	case syntax.OpLiteral:
		return len(string(e.Rune))
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 4
	case syntax.OpStar, syntax.OpPlus:
		return maxReach
	case syntax.OpRepeat:
		if e.Max < 0 {
			return maxReach
		}
		return min(maxReach, e.Max*longestOne(e.Sub[0]))
	case syntax.OpAlternate:
		most := 0
		for _, sub := range e.Sub {
			most = max(most, longest(sub))
		}
		return most
	}
	sum := 0
	for _, sub := range e.Sub {
		sum = min(maxReach, sum+longest(sub))
	}
	return sum
}

// longestOne is longest for what is repeated: most classes are of ASCII.
func longestOne(e *syntax.Regexp) int {
	if e.Op == syntax.OpCharClass && len(e.Rune) > 0 && e.Rune[len(e.Rune)-1] < 0x80 {
		return 1
	}
	return longest(e)
}

// window is a part of a text in which a rule is tried.
type window struct{ start, end int }

// Find calls found with the place of each secret in a text until that returns false. It returns false if the text has so many
// keywords that not all of it was looked at: then it may hold more.
func Find(text string, found func(start, end int) bool) (complete bool) {
	t := theTable()
	windows, complete := t.windows(text)
	if !complete {
		return false
	}
	for rule, list := range windows {
		for _, w := range list {
			if !t.try(rule, text[w.start:w.end], w.start, found) {
				return true
			}
		}
	}
	return true
}

// windows are the parts of a text in which rules are tried, by the numbers of the rules. They are not complete where that would be
// too much.
func (t *table) windows(text string) (windows map[int][]window, complete bool) {
	budget := budgetFactor*len(text) + budgetLeast
	for at := 0; at < len(text) && budget >= 0; at++ {
		if !t.keywords.Begins(text, at) {
			continue
		}
		t.keywords.At(text, at, func(word int) {
			for _, rule := range t.of[word] {
				if windows == nil {
					windows = map[int][]window{}
				}
				reach := t.ready[rule]().reach
				next := window{start: max(0, at-reach), end: min(len(text), at+reach+1)}
				list := windows[rule]
				if n := len(list); n > 0 && list[n-1].end >= next.start {
					budget -= next.end - list[n-1].end
					list[n-1].end = next.end
					continue
				}
				budget -= next.end - next.start
				windows[rule] = append(list, next)
			}
		})
	}
	return windows, budget >= 0
}

// try tells found of the secrets in a part of a text. It returns false when that did.
func (t *table) try(rule int, part string, offset int, found func(start, end int) bool) bool {
	c := t.ready[rule]()
	for _, places := range c.expression.FindAllStringSubmatchIndex(part, -1) {
		start, end := secretOf(places, rules[rule].group)
		secret := part[start:end]
		if secret == "" || rules[rule].entropy > 0 && Entropy(secret) <= rules[rule].entropy || c.allows(secret, rules[rule].stopWords) {
			continue
		}
		if !found(offset+start, offset+end) {
			return false
		}
	}
	return true
}

// secretOf is the group of a match that is the secret: the one that the rule names, or the first that has something, or all.
func secretOf(places []int, group int) (start, end int) {
	if group > 0 && 2*group+1 < len(places) && places[2*group] >= 0 {
		return places[2*group], places[2*group+1]
	}
	for i := 2; i+1 < len(places); i += 2 {
		if places[i] >= 0 && places[i+1] > places[i] {
			return places[i], places[i+1]
		}
	}
	return places[0], places[1]
}

func (c compiled) allows(secret string, stopWords []string) bool {
	if len(stopWords) > 0 {
		lower := strings.ToLower(secret)
		if slices.ContainsFunc(stopWords, func(word string) bool { return strings.Contains(lower, word) }) {
			return true
		}
	}
	return slices.ContainsFunc(c.allowed, func(e *regexp.Regexp) bool { return e.MatchString(secret) })
}

// Entropy is that of the bytes of a text, in bits for a byte (Shannon).
func Entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}
