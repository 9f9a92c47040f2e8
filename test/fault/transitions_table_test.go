//go:build faulttest

package fault_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// transitionTally counts results for a table.
var transitionTally = &tally{counts: map[string]map[string]tallied{}}

// tally counts results by row and column.
type tally struct {
	mu     sync.Mutex
	counts map[string]map[string]tallied
}

type tallied struct{ passed, run int }

// record counts one result.
func (t *tally) record(row, column string, passed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[row] == nil {
		t.counts[row] = map[string]tallied{}
	}
	count := t.counts[row][column]
	count.run++
	if passed {
		count.passed++
	}
	t.counts[row][column] = count
}

// table shows the rows whose names begin with prefix, and the sums, as passed/run.
func (t *tally) table(prefix string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	columns := []string{columnTransitions, columnRefused, columnNull, columnHeldBack}
	sums := map[string]tallied{}
	text := &strings.Builder{}
	line := func(name string, counts map[string]tallied) {
		fmt.Fprintf(text, "%-60s", name)
		for _, column := range columns {
			fmt.Fprintf(text, "  %-11s %9s", column, fmt.Sprintf("%d/%d", counts[column].passed, counts[column].run))
		}
		text.WriteString("\n")
	}
	for _, row := range slices.Sorted(maps.Keys(t.counts)) {
		if !strings.HasPrefix(row, prefix) {
			continue
		}
		for column, count := range t.counts[row] {
			sums[column] = tallied{sums[column].passed + count.passed, sums[column].run + count.run}
		}
		line(strings.TrimPrefix(row, prefix), t.counts[row])
	}
	line("all", sums)
	return text.String()
}
