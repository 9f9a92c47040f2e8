//go:build faulttest

package fault_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

var (
	mixes = flag.Uint64("mixes", 80, "how many random mixes of steps and faults to play, the kinds in turn")
	seed  = flag.Uint64("seed", 0, "seed of the first mix; 0 takes one from the clock")
)

// F13: steps of all scenarios and all faults, mixed at random. A mix that fails is made
// smaller as long as it fails, and printed.
func TestRandom(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for next := first; next < first+*mixes; next++ {
		// The seed says which kind it is, too.
		kind := kinds[next%uint64(len(kinds))]
		mix := scenario.Random(kind, next)
		t.Run(fmt.Sprintf("%s/seed %d", kind.Name, mix.Seed), func(t *testing.T) {
			t.Parallel()
			err := bench.PlayMix(t, mix)
			if err != nil {
				t.Logf("played again, because: %v", err)
				if err = bench.PlayMix(t, mix); err == nil {
					table.PlayedAgain(t.Name())
				}
			}
			table.Add(kind.Name+"/random", "F13 random", err == nil)
			if err != nil {
				smallest, problem := bench.Shrink(t, mix, err)
				t.Errorf("%v\n\nthe smallest mix that fails so:\n%s\n%v\n\nagain: make test-fault CASE=TestRandom TEST_FLAGS='-mixes 1 -seed %d'", err, smallest, problem, mix.Seed)
			}
		})
	}
}
