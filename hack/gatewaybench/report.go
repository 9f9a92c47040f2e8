package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// group is what was measured of one proxy in one scenario.
type group []result

// spread returns a statistic of the group: its lowest value, its median and its highest.
func (g group) spread(value func(result) float64) (low, median, high float64) {
	values := make([]float64, len(g))
	for i, r := range g {
		values[i] = value(r)
	}
	slices.Sort(values)
	middle := len(values) / 2
	median = values[middle]
	if len(values)%2 == 0 {
		median = (median + values[middle-1]) / 2
	}
	return values[0], median, values[len(values)-1]
}

func (g group) median(value func(result) float64) float64 {
	_, median, _ := g.spread(value)
	return median
}

func others(r result) float64 { return r.Others }
func p50(r result) float64    { return float64(r.P50) / 1000 }
func p99(r result) float64    { return float64(r.P99) / 1000 }
func idle(r result) float64   { return float64(r.Idle) / (1 << 20) }
func loaded(r result) float64 { return float64(r.Loaded) / (1 << 20) }

// groups are the results by scenario and proxy. Those without a proxy are the backend's.
type groups map[scenario]map[string]group

func grouped(results []result) groups {
	all := groups{}
	for _, r := range results {
		if all[r.Scenario] == nil {
			all[r.Scenario] = map[string]group{}
		}
		all[r.Scenario][r.Proxy] = append(all[r.Scenario][r.Proxy], r)
	}
	return all
}

// report writes the tables.
func report(out io.Writer, b *bench, results []result) error {
	if len(results) == 0 {
		return nil
	}
	all := grouped(results)
	var text strings.Builder
	text.WriteString("| routes | proxy | requests/s (lowest-highest) | CPU µs/request (lowest-highest) | others on its core | p50 ms | " +
		"p99 ms | MiB idle | MiB after load |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range b.scenarios {
		for _, p := range b.proxies {
			g := all[s][p.name]
			if len(g) == 0 {
				continue
			}
			slowest, rate, fastest := g.spread(result.rate)
			cheapest, cost, dearest := g.spread(result.cost)
			fmt.Fprintf(&text, "| %s | %s | %.0f (%.0f-%.0f) | %.1f (%.1f-%.1f) | %.0f %% | %.2f | %.2f | %.1f | %.1f |\n", s, p.name,
				rate, slowest, fastest, cost, cheapest, dearest, g.median(
					others,
				)*100, g.median(p50), g.median(p99), g.median(idle), g.median(loaded))
		}
	}
	if direct := all[scenario{}][""]; len(direct) > 0 {
		slowest, rate, fastest := direct.spread(result.rate)
		fmt.Fprintf(
			&text, "\nLoad and backend alone, without a proxy, on their one core: %.0f requests/s (%.0f-%.0f).\n", rate, slowest, fastest,
		)
	}
	if table := goalTable(all); table != "" {
		text.WriteString("\n" + table)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
