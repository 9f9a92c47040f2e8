package gatewayattack

import (
	"fmt"
	"slices"
	"strings"
)

// table is family by server: attacks, the requests of them that reached the server, and what was violated.
func (s *suite) table() string {
	var families, columns []string
	type cell struct{ attacks, reached, violations int }
	cells := map[[2]string]*cell{}
	byOracle := map[[2]string]int{}
	for _, p := range s.played {
		column := p.lane.name
		if p.lane.hostile != nil {
			column = strings.TrimSpace("recorder " + p.lane.over)
		}
		if s.between != nil {
			column = s.target.name + " in front"
		}
		if !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
		if !slices.Contains(families, p.family) {
			families = append(families, p.family)
		}
		c := cells[[2]string{p.family, column}]
		if c == nil {
			c = &cell{}
			cells[[2]string{p.family, column}] = c
		}
		c.attacks++
		c.reached += s.judge.reached[p]
		c.violations += len(s.judge.found[p])
		for _, v := range s.judge.found[p] {
			byOracle[[2]string{v.oracle, column}]++
		}
	}
	slices.Sort(families)
	var out strings.Builder
	fmt.Fprintf(&out, "| family | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	total := make([]cell, len(columns))
	for _, family := range families {
		fmt.Fprintf(&out, "| %s |", family)
		for i, column := range columns {
			c := cells[[2]string{family, column}]
			if c == nil {
				out.WriteString(" |")
				continue
			}
			fmt.Fprintf(&out, " %d / %d / %d |", c.attacks, c.reached, c.violations)
			total[i].attacks += c.attacks
			total[i].reached += c.reached
			total[i].violations += c.violations
		}
		out.WriteByte('\n')
	}
	out.WriteString("| all |")
	for _, c := range total {
		fmt.Fprintf(&out, " %d / %d / %d |", c.attacks, c.reached, c.violations)
	}
	fmt.Fprintf(&out, "\n\n| oracle | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, oracle := range oracles {
		fmt.Fprintf(&out, "| %s |", oracle)
		for _, column := range columns {
			fmt.Fprintf(&out, " %d |", byOracle[[2]string{oracle, column}])
		}
		out.WriteByte('\n')
	}
	return out.String()
}
