package match_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/redact/match"
)

// all are the words that a set finds in a text, with their places, and where the text ends within a word.
func all(s *match.Set, text string) (found map[string][]int, cuts []int) {
	found = map[string][]int{}
	for at := range len(text) {
		if !s.Begins(text, at) {
			continue
		}
		if s.At(text, at, func(word int) { found[s.Words()[word]] = append(found[s.Words()[word]], at) }) {
			cuts = append(cuts, at)
		}
	}
	return found, cuts
}

func FuzzSetFindsWhatIndexFinds(f *testing.F) {
	f.Add("a ab abc b", "xabcab")
	f.Add("\xff aa aaa aaab", "aaaab\xff")
	f.Fuzz(func(t *testing.T, list, text string) {
		words := strings.Fields(list)
		found, cuts := all(match.New(words), text)
		var wantCuts []int
		for at := range len(text) {
			for _, word := range words {
				if has := strings.HasPrefix(text[at:], word); has != slices.Contains(found[word], at) {
					t.Errorf("%q at %d of %q: %v", word, at, text, found[word])
				}
			}
			if slices.ContainsFunc(words, func(word string) bool { return len(word) > len(text)-at && strings.HasPrefix(word, text[at:]) }) {
				wantCuts = append(wantCuts, at)
			}
		}
		if !slices.Equal(cuts, wantCuts) {
			t.Errorf("%q ends within a word at %v, want %v (%q)", text, cuts, wantCuts, words)
		}
	})
}

func TestSetFolds(t *testing.T) {
	found, _ := all(match.NewFold([]string{"GhP_", "sk"}), "ghp_ GHP_ skk")
	if len(found["ghp_"]) != 2 || len(found["sk"]) != 1 {
		t.Errorf("found %v", found)
	}
}
