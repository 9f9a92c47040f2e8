package main

import (
	"fmt"
	"strings"
)

// ratio is a goal: how many times as fast as another proxy, at a number of plain routes.
type ratio struct {
	peer   string
	routes int
	goal   float64
}

var ratios = []ratio{{"nginx", 1, 0.6}, {"traefik", 1, 1.5}, {"caddy", 1, 2}, {"traefik", 5000, 5}}

// limit is a goal: how much memory at most, at a number of plain routes.
type limit struct {
	routes int
	what   string
	value  func(result) float64
	goal   float64 // MiB
}

var limits = []limit{{1, "idle", idle, 25}, {1000, "after load", loaded, 60}}

// maxRoutingCost is how much more 5,000 routes may cost than one.
const maxRoutingCost = 0.05

// goalTable says which goals were met. The processor time of a request decides. Requests per second do not: with a fast
// proxy, the load generator is their limit, and other programs on the machine reduce them.
func goalTable(all groups) string {
	var text strings.Builder
	row := func(what, goal, measured string, met bool) {
		verdict := "yes"
		if !met {
			verdict = "NO"
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", what, goal, measured, verdict)
	}
	plain := func(routes int) map[string]group { return all[scenario{routes: routes}] }
	for _, r := range ratios {
		ours, theirs := plain(r.routes)["slipway"], plain(r.routes)[r.peer]
		if len(ours) == 0 || len(theirs) == 0 {
			continue
		}
		byRate := ours.median(result.rate) / theirs.median(result.rate)
		byCost := theirs.median(result.cost) / ours.median(result.cost)
		row(fmt.Sprintf("%s, beside %s", scenario{routes: r.routes}, r.peer), fmt.Sprintf("≥ %gx", r.goal),
			fmt.Sprintf("%.2fx by CPU (%.2fx by requests/s)", byCost, byRate), byCost >= r.goal)
	}
	if one, many := plain(1)["slipway"], plain(5000)["slipway"]; len(one) > 0 && len(many) > 0 {
		byRate := 1 - many.median(result.rate)/one.median(result.rate)
		byCost := many.median(result.cost)/one.median(result.cost) - 1
		row("routing: 5,000 routes instead of 1", fmt.Sprintf("≤ %.0f %%", maxRoutingCost*100),
			fmt.Sprintf("%.1f %% more CPU (%.1f %% fewer requests/s)", byCost*100, byRate*100), byCost <= maxRoutingCost)
	}
	for _, l := range limits {
		if ours := plain(l.routes)["slipway"]; len(ours) > 0 {
			used := ours.median(l.value)
			row(fmt.Sprintf("memory, %s, %s", scenario{routes: l.routes}, l.what), fmt.Sprintf("≤ %g MiB", l.goal),
				fmt.Sprintf("%.1f MiB", used), used <= l.goal)
		}
	}
	if text.Len() == 0 {
		return ""
	}
	return "| goal | | measured | met |\n|---|---|---|---|\n" + text.String()
}
