// Package property says how many random inputs a test of a property tries, and which.
//
// All of them take minutes with the race detector. So `make test` tries a share, and the committed tree chooses which: each
// change tries others. `make test-property` tries all.
package property

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"testing"
)

const (
	// seedVariable holds the text that chooses the inputs. The Makefile sets it from SEED, or from the committed tree.
	seedVariable = "PROPERTY_SEED"
	// wholeVariable asks for all inputs when it is not empty.
	wholeVariable = "PROPERTY_WHOLE"
)

// Inputs returns how many inputs to try: all, or a share of them. It returns a source of inputs for each number, too.
// A failing test says how to try the same inputs again.
func Inputs(t testing.TB, all, share int) (int, func(stream uint64) *rand.Rand) {
	t.Helper()
	return inputs(t, os.Getenv(seedVariable), os.Getenv(wholeVariable) != "", all, share)
}

func inputs(t testing.TB, seed string, whole bool, all, share int) (int, func(stream uint64) *rand.Rand) {
	t.Helper()
	count := share
	if whole {
		count = all
	}
	t.Logf("%d of %d random inputs, %s=%q", count, all, seedVariable, seed)
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))
	start := h.Sum64()
	return count, func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(start, stream)) }
}
