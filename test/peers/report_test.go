//go:build peers

package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// report is a table: a line for each thing that is measured, and a column for each contender.
type report struct {
	lines   []string
	columns []string
	cells   map[[2]string][]string // by line and column, one for each round
}

func (r *report) add(line, column, value string) {
	cell := [2]string{line, column}
	if r.cells == nil {
		r.cells = map[[2]string][]string{}
	}
	if !slices.Contains(r.lines, line) {
		r.lines = append(r.lines, line)
	}
	if !slices.Contains(r.columns, column) {
		r.columns = append(r.columns, column)
	}
	r.cells[cell] = append(r.cells[cell], value)
}

// String is the table in Markdown. Rounds are separated by semicolons.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(r.columns, " | "), strings.Repeat("---|", len(r.columns)))
	for _, line := range r.lines {
		fmt.Fprintf(&b, "| %s |", line)
		for _, column := range r.columns {
			fmt.Fprintf(&b, " %s |", strings.Join(r.cells[[2]string{line, column}], "; "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// write puts the table where docs/performance.md takes it from.
func (r *report) write() error {
	file := filepath.Join("..", "..", "bin", "peers.md")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(r.String()), 0o600)
}
