package rendezvous

import (
	"fmt"
	"math"
	"testing"
)

// chosen returns the index of the candidate with the highest score for each of many hashes.
func chosen(names []string, weights []uint64) []int {
	out := make([]int, 100_000)
	for i := range out {
		hash, highest := Hash(fmt.Sprintf("client-%d", i)), math.Inf(-1)
		for k, name := range names {
			if score := Weighted(hash, Hash(name), weights[k]); score > highest {
				out[i], highest = k, score
			}
		}
	}
	return out
}

func TestWeightsAreTheShares(t *testing.T) {
	counts := [3]int{}
	for _, k := range chosen([]string{"a", "b", "c"}, []uint64{70, 20, 10}) {
		counts[k]++
	}
	for k, want := range []int{70_000, 20_000, 10_000} {
		if got := counts[k]; got < want*95/100 || got > want*105/100 {
			t.Errorf("candidate %d was chosen %d times of 100000, want about %d", k, got, want)
		}
	}
}

// A canary that grows from 10 to 20 of 100 takes 1 of 9 from the other one, and gives nothing back.
func TestAChangedWeightMovesOnlyItsShare(t *testing.T) {
	before := chosen([]string{"a", "b"}, []uint64{90, 10})
	after := chosen([]string{"a", "b"}, []uint64{80, 20})
	gained, lost := 0, 0
	for i := range before {
		switch {
		case before[i] == 0 && after[i] == 1:
			gained++
		case before[i] == 1 && after[i] == 0:
			lost++
		}
	}
	if gained < 9_500 || gained > 10_500 || lost > 0 {
		t.Errorf("%d of 100000 came and %d went, want about 10000 and 0", gained, lost)
	}
}

// The replicas of a gateway are processes of their own, and of different releases for some time.
func TestTheHashIsTheSameInEveryProcess(t *testing.T) {
	if got := Score(Hash("client"), Hash("endpoint")); got != 3695939825912900486 {
		t.Errorf("the score is %d", got)
	}
}
