package main

import (
	"fmt"
	"time"
)

// goal is a line of the table of goals.
type goal struct {
	what, goal, measured, byCPU string
	met                         bool
}

func (g goal) row() string {
	verdict := "NO"
	if g.met {
		verdict = "yes"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", g.what, g.goal, g.measured, g.byCPU, verdict)
}

// The goals.
const (
	minOfEngine   = 0.95 // as fast as the bare engine
	maxVerify     = 0.10 // of the time of the run
	maxRestic     = 1.0  // of its time, on first runs
	maxResticMore = 1.1  // of its time, with 1 % changed
	maxStored     = 1.03 // of what restic stores
	maxPeak       = 300  // MiB
)

// goals says of each goal whether it was met. The median of the rounds decides.
func (b *bench) goals(results samples) []goal {
	var all []goal
	var most float64
	for _, s := range b.shapes {
		for _, step := range []string{firstRun, onePercent} {
			mine := results.matching(s.Name, step, (&ours{}).name())
			if len(mine) == 0 {
				continue
			}
			what := fmt.Sprintf("%s, %s", s, step)
			engine, theirs := results.matching(s.Name, step, b.baseline()), results.matching(s.Name, step, (&restic{}).name())
			if len(engine) > 0 {
				all = append(all, b.besideEngine(what, mine, engine))
			}
			all = append(all, verifyGoal(what, mine))
			if len(theirs) > 0 {
				limit := maxRestic
				if step == onePercent {
					limit = maxResticMore
				}
				all = append(all, atMost(what+": time beside restic", limit, mine, theirs, wall, cpu),
					atMost(what+": stored beside restic", maxStored, mine, theirs, stored, nil))
			}
			most = max(most, spreadOf(mine.values(peak)).high, spreadOf(mine.values(verifyPeak)).high)
		}
	}
	return append(all, goal{
		what: "memory of a process, at most", goal: fmt.Sprintf("<= %d MiB", maxPeak), measured: fmt.Sprintf("%.0f MiB", most),
		met: most <= maxPeak,
	})
}

// besideEngine compares with the bare engine. What scheduling takes counts.
func (b *bench) besideEngine(what string, mine, engine samples) goal {
	speed := spreadOf(ratios(engine, mine, wall))
	g := goal{
		what: what + ": speed beside the bare engine", goal: fmt.Sprintf(">= %.2fx", minOfEngine), measured: speed.text(2) + "x",
		byCPU: spreadOf(ratios(engine, mine, cpu)).text(2) + "x",
	}
	if b.scheduling > 0 {
		late := make(samples, len(mine))
		for i, m := range mine {
			m.Run.Wall += b.scheduling
			late[i] = m
		}
		with := spreadOf(ratios(engine, late, wall))
		g.measured += fmt.Sprintf("; %sx with %v for scheduling", with.text(2), b.scheduling.Round(10*time.Millisecond))
		speed = with
	}
	g.met = speed.median >= minOfEngine
	return g
}

func verifyGoal(what string, mine samples) goal {
	share := func(whole, part func(sample) float64) spread {
		var found []float64
		for _, m := range mine {
			found = append(found, part(m)/whole(m)*100)
		}
		return spreadOf(found)
	}
	byTime := share(wall, verifyWall)
	return goal{
		what: what + ": verification on top of the run", goal: fmt.Sprintf("<= %.0f %%", maxVerify*100), measured: byTime.text(1) + " %",
		byCPU: share(cpu, verifyCPU).text(1) + " %", met: byTime.median <= maxVerify*100,
	}
}

func atMost(what string, limit float64, mine, theirs samples, value, byCPU func(sample) float64) goal {
	measured := spreadOf(ratios(mine, theirs, value))
	g := goal{what: what, goal: fmt.Sprintf("<= %.2fx", limit), measured: measured.text(2) + "x", met: measured.median <= limit}
	if byCPU != nil {
		g.byCPU = spreadOf(ratios(mine, theirs, byCPU)).text(2) + "x"
	}
	return g
}
