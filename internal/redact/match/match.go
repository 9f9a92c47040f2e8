// Package match finds many words in a text at once.
package match

import (
	"slices"
	"strings"
)

// Set is a set of words. It is safe for concurrent use.
type Set struct {
	// words are in their order, each once.
	words []string
	// first says where the words with a first byte begin.
	first [257]int
	// pairs has a bit for each two bytes that a word begins with. It rules out nearly every place of a text.
	pairs [1024]uint64
	// single has the first bytes of words of one byte.
	single bool
	fold   bool
}

// New returns a set of words. Those that are empty are left out.
func New(words []string) *Set { return build(slices.Clone(words), false) }

// NewFold returns a set of words of which the capital letters A to Z are the same as the small ones, in the text too.
func NewFold(words []string) *Set {
	lower := make([]string, 0, len(words))
	for _, word := range words {
		lower = append(lower, strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' {
				return r | 0x20
			}
			return r
		}, word))
	}
	return build(lower, true)
}

func build(words []string, fold bool) *Set {
	slices.Sort(words)
	words = slices.DeleteFunc(slices.Compact(words), func(word string) bool { return word == "" })
	s := &Set{words: words, fold: fold}
	at := 0
	for c := range 256 {
		s.first[c] = at
		for at < len(words) && int(words[at][0]) == c {
			if len(words[at]) == 1 {
				s.single = true
			} else {
				s.pairs[pair(words[at][0], words[at][1])>>6] |= 1 << (pair(words[at][0], words[at][1]) & 63)
			}
			at++
		}
	}
	s.first[256] = at
	return s
}

func pair(a, b byte) int { return int(a)<<8 | int(b) }

// Words are the words, in the order of their numbers.
func (s *Set) Words() []string { return s.words }

// Begins reports whether any word may begin at a place of a text. It is quick, and may be wrong with a yes.
func (s *Set) Begins(text string, at int) bool {
	if s.single || at+1 >= len(text) {
		return at < len(text)
	}
	p := pair(s.byte(text[at]), s.byte(text[at+1]))
	return s.pairs[p>>6]&(1<<(p&63)) != 0
}

func (s *Set) byte(c byte) byte {
	if s.fold && c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// At calls found with the number of each word that stands at a place of a text, the shortest first. It reports whether the text
// ends within a word.
func (s *Set) At(text string, at int, found func(word int)) (cut bool) {
	if at >= len(text) {
		return false
	}
	c := s.byte(text[at])
	low, high := s.first[c], s.first[int(c)+1]
	for depth := 1; low < high; depth++ {
		if len(s.words[low]) == depth {
			found(low)
			low++
		}
		if low == high {
			return false
		}
		if at+depth == len(text) {
			return true
		}
		c := s.byte(text[at+depth])
		low, high = s.narrow(low, high, depth, c)
	}
	return false
}

// narrow returns those of the words from low to high whose byte at depth is c. All of them are longer than that.
func (s *Set) narrow(low, high, depth int, c byte) (int, int) {
	if s.words[low][depth] == c && s.words[high-1][depth] == c {
		return low, high
	}
	low += bound(s.words[low:high], func(word string) bool { return word[depth] >= c })
	return low, low + bound(s.words[low:high], func(word string) bool { return word[depth] > c })
}

// bound is the number of the first word that is so, the number of words if none is.
func bound(words []string, is func(string) bool) int {
	low, high := 0, len(words)
	for low < high {
		middle := (low + high) / 2
		if is(words[middle]) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
