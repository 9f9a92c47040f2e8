//go:build faulttest

package fault_test

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

var (
	mixes = flag.Uint64("mixes", 80, "how many random mixes of steps and faults to play, the kinds in turn")
	seed  = flag.Uint64("seed", 1, "seed of the first mix; 0 takes one from the clock")
)

// F13: steps of all scenarios and all faults, mixed at random. A mix that fails is made
// smaller as long as it fails, and printed.
func TestRandom(t *testing.T) {
	t.Parallel()
	first, count := *seed, *mixes
	switch {
	case *sample != "":
		first, count = hashOf(*sample)%1_000_000, sampledMixes
	case first == 0:
		first = uint64(time.Now().UnixNano())
	}
	for next := first; next < first+count; {
		steps := next / scenario.SameSteps
		kind := kinds[steps%uint64(len(kinds))]
		var same []scenario.Mix
		for ; next < first+count && next/scenario.SameSteps == steps; next++ {
			same = append(same, scenario.Random(kind, next))
		}
		t.Run(fmt.Sprintf("%s/steps %d", kind.Name, steps), func(t *testing.T) {
			t.Parallel()
			reference, first := bench.PlaySteps(t, same[0])
			if first != nil {
				t.Logf("played again, because: %v", first)
				var err error
				if reference, err = bench.PlaySteps(t, same[0]); err != nil {
					t.Fatalf("%v\n%s", err, same[0])
				}
			}
			table.Played(t.Name(), first)
			for _, mix := range same {
				t.Run(fmt.Sprintf("seed %d", mix.Seed), func(t *testing.T) {
					t.Parallel()
					err := playMix(t, mix, reference)
					table.Add(kind.Name+"/random", "F13 random", err == nil)
					if err != nil {
						smallest, problem := bench.Shrink(t, mix, err)
						t.Errorf("%v\n\nthe smallest mix that fails so:\n%s\n%v\n\nagain: make test-fault-long MIXES=1 SEED=%d", err, smallest, problem, mix.Seed)
					}
				})
			}
		})
	}
}

// playMix plays a mix, and when it fails once more, with a reference of its own: the
// machine may have been busy when the first one was played, too.
func playMix(t *testing.T, mix scenario.Mix, reference *scenario.Outcome) error {
	t.Helper()
	err := bench.PlayFaults(t, mix, reference)
	if errors.As(err, new(scenario.Late)) {
		return err
	}
	if err != nil {
		t.Logf("played again, because: %v", err)
		if err := bench.PlayMix(t, mix); err != nil {
			return err
		}
	}
	table.Played(t.Name(), err)
	return nil
}
