package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// String is a line for whoever waits.
func (m sample) String() string {
	text := fmt.Sprintf("%s: %.2f s, CPU %.2f s, %d MiB, stored %d MB", m.Program, m.Run.Wall.Seconds(), m.Run.CPU.Seconds(),
		m.Run.Peak>>20, m.Stored/1e6)
	if m.Verify.Wall > 0 {
		text += fmt.Sprintf("; verify %.2f s, CPU %.2f s, %d MiB", m.Verify.Wall.Seconds(), m.Verify.CPU.Seconds(), m.Verify.Peak>>20)
	}
	return text
}

// samples are what was measured.
type samples []sample

// matching are those of a program in a step, round by round.
func (all samples) matching(shape, step, program string) samples {
	var found samples
	for _, m := range all {
		if m.Shape == shape && m.Step == step && m.Program == program {
			found = append(found, m)
		}
	}
	return found
}

// values returns a value of each.
func (all samples) values(value func(sample) float64) []float64 {
	var found []float64
	for _, m := range all {
		found = append(found, value(m))
	}
	return found
}

// spread is the lowest value, the median and the highest one.
type spread struct{ low, median, high float64 }

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (median + sorted[middle-1]) / 2
	}
	return spread{sorted[0], median, sorted[len(sorted)-1]}
}

// text prints a spread with so many digits.
func (s spread) text(digits int) string {
	if s.low == s.high {
		return fmt.Sprintf("%.*f", digits, s.median)
	}
	return fmt.Sprintf("%.*f (%.*f-%.*f)", digits, s.median, digits, s.low, digits, s.high)
}

func wall(m sample) float64       { return m.Run.Wall.Seconds() }
func cpu(m sample) float64        { return m.Run.CPU.Seconds() }
func peak(m sample) float64       { return float64(m.Run.Peak) / (1 << 20) }
func stored(m sample) float64     { return float64(m.Stored) / 1e6 }
func verifyWall(m sample) float64 { return m.Verify.Wall.Seconds() }
func verifyCPU(m sample) float64  { return m.Verify.CPU.Seconds() }
func verifyPeak(m sample) float64 { return float64(m.Verify.Peak) / (1 << 20) }

// ratios divides round by round: what the machine did in a round it did to both.
func ratios(a, b samples, value func(sample) float64) []float64 {
	var found []float64
	for i := range min(len(a), len(b)) {
		if value(b[i]) > 0 {
			found = append(found, value(a[i])/value(b[i]))
		}
	}
	return found
}

// report writes the tables.
func (b *bench) report(out io.Writer, results samples) error {
	if len(results) == 0 {
		return nil
	}
	var text strings.Builder
	text.WriteString(b.describe(results))
	text.WriteString("\n| goal | | measured | in CPU time | met |\n|---|---|---|---|---|\n")
	for _, g := range b.goals(results) {
		text.WriteString(g.row())
	}
	text.WriteString("\n| files | step | program | s (lowest-highest) | CPU s | peak MiB | stored MB |\n|---|---|---|---|---|---|---|\n")
	for _, s := range b.shapes {
		for _, step := range []string{firstRun, onePercent} {
			for _, p := range b.programs {
				m := results.matching(s.Name, step, p.name())
				if len(m) == 0 {
					continue
				}
				row := func(what string, wall, cpu, peak func(sample) float64, stored string) {
					fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %.0f | %s |\n", s, step, what,
						spreadOf(m.values(wall)).text(2), spreadOf(m.values(cpu)).text(2), spreadOf(m.values(peak)).high, stored)
				}
				row(p.name(), wall, cpu, peak, spreadOf(m.values(stored)).text(1))
				if _, isOurs := p.(*ours); isOurs {
					row(p.name()+", verify", verifyWall, verifyCPU, verifyPeak, "")
				}
			}
		}
	}
	_, err := io.WriteString(out, text.String())
	return errors.Join(err, b.save(results))
}

// describe says what was measured, and on what.
func (b *bench) describe(results samples) string {
	var text strings.Builder
	caches := "each tree was read before each measurement"
	if b.cold {
		caches = "the caches of the system were dropped before each measurement"
	}
	fmt.Fprintf(
		&text, "%d rounds, %d cores, %s; %s. Load average at the end: %s.", b.rounds, runtime.NumCPU(), runtime.Version(), caches,
		loadAverage(),
	)
	for _, p := range b.programs {
		if said := strings.TrimSpace(version(context.Background(), p)); said != "" {
			fmt.Fprintf(&text, " %s: %s.", p.name(), said)
		}
	}
	if slices.ContainsFunc(results, func(m sample) bool { return m.Young }) {
		text.WriteString(" The trees were younger than 16 minutes in some rounds: slipway-backup was told to ignore change times there.")
	}
	text.WriteString("\n")
	return text.String()
}

func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:3], " ")
}

// save appends the results to a file.
func (b *bench) save(results samples) error {
	if b.out == "" {
		return nil
	}
	raw, err := json.Marshal(struct {
		Time    time.Time
		Load    string
		Cold    bool
		Shapes  []shape
		Samples samples
	}{time.Now().UTC(), loadAverage(), b.cold, b.shapes, results})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(b.out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	return errors.Join(err, f.Close())
}
