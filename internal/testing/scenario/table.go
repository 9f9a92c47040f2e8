package scenario

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/slipway-dev/slipway/internal/text"
)

// Table counts what passed, by row and column. The zero value is ready.
type Table struct {
	mu      sync.Mutex
	rows    []string
	columns []string
	cells   map[[2]string]*cell
	played  int
	again   []string
	faulty  int
	missed  []string
}

type cell struct{ passed, run int }

// Add counts one case.
func (t *Table) Add(row, column string, passed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cells == nil {
		t.cells = map[[2]string]*cell{}
	}
	if !slices.Contains(t.rows, row) {
		t.rows = append(t.rows, row)
	}
	if !slices.Contains(t.columns, column) {
		t.columns = append(t.columns, column)
	}
	c := t.cells[[2]string{row, column}]
	if c == nil {
		c = &cell{}
		t.cells[[2]string{row, column}] = c
	}
	c.run++
	if passed {
		c.passed++
	}
}

// maxWhy bounds what the table says of one run that was played again.
const maxWhy = 4096

// Played notes a run that may be played twice, and what went wrong the first time if it
// passed only the second time, or nil.
func (t *Table) Played(name string, first error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.played++
	if first != nil {
		why := text.Cut(first.Error(), maxWhy)
		t.again = append(t.again, name+": "+strings.ReplaceAll(why, "\n", "\n  "))
	}
}

// Again are the runs that passed only at the second try, with why, and how many could
// have.
func (t *Table) Again() (names []string, played int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.again)), t.played
}

// Injected notes a case with a fault, and whether it was injected.
func (t *Table) Injected(name string, injected bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faulty++
	if !injected {
		t.missed = append(t.missed, name)
	}
}

// Missed are the cases in which there was no write to inject the fault at, and how many
// had a fault.
func (t *Table) Missed() (names []string, faulty int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.missed)), t.faulty
}

// Total returns how many cases passed, and how many there were.
func (t *Table) Total() (passed, run int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.cells {
		passed += c.passed
		run += c.run
	}
	return passed, run
}

// String is the table in Markdown, rows and columns in alphabetical order: passed/run.
func (t *Table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows, columns := slices.Sorted(slices.Values(t.rows)), slices.Sorted(slices.Values(t.columns))
	var out strings.Builder
	fmt.Fprintf(&out, "| |%s|\n|---|%s\n", strings.Join(columns, "|"), strings.Repeat("---|", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(&out, "|%s|", row)
		for _, column := range columns {
			if c := t.cells[[2]string{row, column}]; c != nil {
				fmt.Fprintf(&out, "%d/%d", c.passed, c.run)
			}
			out.WriteString("|")
		}
		out.WriteString("\n")
	}
	return out.String()
}
