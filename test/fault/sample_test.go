//go:build faulttest

package fault_test

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

// sample says which cases are played. `make test` gives it the hash of the committed tree, so that each change plays others.
var sample = flag.String("sample", "", "play one case of half of the faults in each scenario, chosen by this text; empty plays all")

// onlyKind says whose scenarios are played.
var onlyKind = flag.String("kind", "", "play the scenarios of these kinds alone, with commas between them; empty plays those of all")

const (
	// sampledMixes is how many random mixes a sample has.
	sampledMixes = 2 * scenario.SameSteps
	// sampledDefinitions is in how many scenarios of a kind a sample applies the definitions again.
	sampledDefinitions = 3
	// sampledProperties is how many properties of a kind a sample has, and as many more of those with values that are held
	// back.
	sampledProperties = 2
)

// pick returns n of all, chosen by the sample and by what they are; all of them where nothing is sampled.
func pick[T any](what string, n int, all []T) []T {
	if *sample == "" {
		return all
	}
	return pickBy(*sample+" "+what, n, all)
}

// pickBy returns n of all in their order, or all where there are fewer. The text says which.
func pickBy[T any](text string, n int, all []T) []T {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(hashOf(fmt.Sprint(text, " ", a)), hashOf(fmt.Sprint(text, " ", b)))
	})
	chosen := order[:min(n, len(all))]
	slices.Sort(chosen)
	var picked []T
	for _, i := range chosen {
		picked = append(picked, all[i])
	}
	return picked
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// oneOfHalf returns a run of every second column, chosen by the sample; all where nothing is sampled. Other scenarios of a kind have
// other columns, so that hardly a fault is in no scenario at all.
func oneOfHalf(s scenario.Scenario, all []cell) []cell {
	if *sample == "" {
		return all
	}
	byColumn := map[string][]cell{}
	var columns []string
	for _, c := range all {
		if byColumn[c.column] == nil {
			columns = append(columns, c.column)
		}
		byColumn[c.column] = append(byColumn[c.column], c)
	}
	var chosen []cell
	for _, column := range pick(s.Kind+"/"+s.Name+" columns", (len(columns)+1)/2, columns) {
		name := s.Kind + "/" + s.Name + " " + column
		one := pick(name, 1, byColumn[column])[0]
		one.spares = pick(name+" spares", 3, byColumn[column])
		chosen = append(chosen, one)
	}
	return chosen
}

func TestASampleIsChosenByItsText(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	seen := map[int]bool{}
	for i := range 200 {
		text := fmt.Sprint("tree ", i)
		first, again := pickBy(text, 3, all), pickBy(text, 3, all)
		if len(first) != 3 || !slices.Equal(first, again) || !slices.IsSorted(first) {
			t.Fatalf("%q picks %v, and %v when asked again", text, first, again)
		}
		for _, n := range first {
			seen[n] = true
		}
	}
	if len(seen) != len(all) {
		t.Errorf("200 samples have only %v of %v", seen, all)
	}
	if got := pickBy("any", 20, all); !slices.Equal(got, all) {
		t.Errorf("20 of 10 are %v", got)
	}
}
