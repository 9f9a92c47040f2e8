//go:build e2e

package truth

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// result is how a fault was reported.
type result struct {
	name, subject string
	reported      time.Duration
	cleared       *time.Duration // nil where nothing ends the fault
	message       string
}

// table collects the results of a run.
type table struct {
	mutex sync.Mutex
	rows  []result
}

var results table

func (t *table) add(r result) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.rows = append(t.rows, r)
}

// write writes the table to a file, unless its name is empty.
func (t *table) write(file string) error {
	if file == "" {
		return nil
	}
	slices.SortFunc(t.rows, func(a, b result) int { return strings.Compare(a.subject+a.name, b.subject+b.name) })
	var b strings.Builder
	b.WriteString("| object | fault | told after | cleared after | what it says |\n|---|---|---|---|---|\n")
	for _, r := range t.rows {
		cleared := "-"
		if r.cleared != nil {
			cleared = r.cleared.Round(10 * time.Millisecond).String()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.subject, r.name, r.reported.Round(10*time.Millisecond), cleared, strings.ReplaceAll(r.message, "|", "\\|"))
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
