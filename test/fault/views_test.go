//go:build faulttest

package fault_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

// TestViews plays every scenario with what goes wrong all along, in how the operator sees
// the cluster. What is shown late takes longest, and so begins first.
func TestViews(t *testing.T) {
	t.Parallel()
	everyScenario(t, func(t *testing.T, _ scenario.Kind, s scenario.Scenario, _ func()) {
		reference := reference(t, s)
		playAll(t, s, reference, oneOfHalf(s, append(views(reference), orders(reference)...)))
	})
}

// unsaid is how long what is seen at last may not show: a status waits for a second
// for what a pod says.
const unsaid = 1200 * time.Millisecond

// views are F5 and F6: each kind is shown late, and with what cancels out left out.
func views(reference *scenario.Outcome) []cell {
	var all []cell
	for _, kind := range slices.Sorted(maps.Keys(reference.Seen)) {
		for _, late := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second} {
			all = append(all, cell{column: "F5 stale cache", name: fmt.Sprintf("%s by %v", kind, late), Trial: scenario.Trial{
				CacheDelay: fault.NewCacheDelay(map[string]fault.View{kind: {Late: late}}), Idle: unsaid,
			}})
		}
		const window = 300 * time.Millisecond
		all = append(all, cell{column: "F6 events dropped", name: kind, Trial: scenario.Trial{
			CacheDelay: fault.NewCacheDelay(map[string]fault.View{kind: {Squash: window}}), Idle: 2 * window,
		}})
	}
	return all
}

// orders are F7: what happens to the four kinds of which most is seen is shown in every
// order.
func orders(reference *scenario.Outcome) []cell {
	busiest := slices.SortedFunc(maps.Keys(reference.Seen), func(a, b string) int {
		if d := len(reference.Seen[b]) - len(reference.Seen[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	const apart = 120 * time.Millisecond
	var all []cell
	for _, order := range permutations(busiest[:min(4, len(busiest))]) {
		seen := map[string]fault.View{}
		for i, kind := range order {
			seen[kind] = fault.View{Late: time.Duration(i) * apart}
		}
		all = append(all, cell{column: "F7 reordered", name: strings.Join(order, ", "), Trial: scenario.Trial{
			CacheDelay: fault.NewCacheDelay(seen), Idle: 4 * apart,
		}})
	}
	return all
}

func permutations(of []string) [][]string {
	if len(of) < 2 {
		return [][]string{of}
	}
	var all [][]string
	for i, first := range of {
		for _, rest := range permutations(slices.Concat(of[:i], of[i+1:])) {
			all = append(all, append([]string{first}, rest...))
		}
	}
	return all
}
