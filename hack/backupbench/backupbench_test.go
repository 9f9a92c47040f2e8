package main

import (
	"bytes"
	"compress/flate"
	"context"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newBench(t *testing.T, shapes ...shape) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), shapes: shapes, rounds: 1, progress: io.Discard}
	if err := b.makeTrees(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// tree reads a tree, with paths relative to its folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if err := eachFile(folder, func(file string, _ os.FileInfo) error {
		raw, err := os.ReadFile(file)
		name, _ := filepath.Rel(folder, file)
		found[name] = string(raw)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestATreeIsTheSameEachTime(t *testing.T) {
	for _, s := range []shape{small(300), large(2, 1<<20)} {
		one, other := newBench(t, s), newBench(t, s)
		for generation := range 2 {
			if generation > 0 {
				for _, b := range []*bench{one, other} {
					if err := b.changeTree(t.Context(), s); err != nil {
						t.Fatal(err)
					}
				}
			}
			a, b := contents(t, one.tree(s)), contents(t, other.tree(s))
			if len(a) != s.Files {
				t.Fatalf("%s has %d files", s, len(a))
			}
			var bytes int64
			for name, content := range a {
				bytes += int64(len(content))
				if content != b[name] {
					t.Errorf("%s, generation %d: %s differs", s, generation, name)
				}
			}
			if bytes != s.bytes() {
				t.Errorf("%s has %d bytes, want %d", s, bytes, s.bytes())
			}
		}
	}
}

func TestOnePercentChanges(t *testing.T) {
	tests := []struct {
		shape shape
		files int // that change
	}{
		{small(1000), 10},
		{shape{Name: "large", Files: 2, Size: 400 * block, Piece: block}, 2},
	}
	for _, tt := range tests {
		b := newBench(t, tt.shape)
		before := contents(t, b.tree(tt.shape))
		var changed map[string]bool
		for range 2 { // the same files each time, with other content
			if err := b.changeTree(t.Context(), tt.shape); err != nil {
				t.Fatal(err)
			}
			after := contents(t, b.tree(tt.shape))
			different, bytes := map[string]bool{}, 0
			for name, content := range after {
				if len(content) != len(before[name]) {
					t.Errorf("%s: the size of %s changed", tt.shape, name)
				}
				for i := range min(len(content), len(before[name])) {
					if content[i] != before[name][i] {
						bytes++
						different[name] = true
					}
				}
			}
			if len(different) != tt.files {
				t.Errorf("%s: %d files changed, want %d", tt.shape, len(different), tt.files)
			}
			if share := float64(bytes) / float64(tt.shape.bytes()); tt.shape.Size > 0 && math.Abs(share-0.01) > 0.001 {
				t.Errorf("%s: %.4f of the bytes changed", tt.shape, share)
			}
			for name := range different {
				if changed != nil && !changed[name] {
					t.Errorf("%s: %s changed only the second time", tt.shape, name)
				}
			}
			before, changed = after, different
		}
	}
}

func TestHalfOfTheContentIsNoise(t *testing.T) {
	for _, s := range []shape{small(500), large(1, 1<<20)} {
		b := newBench(t, s)
		var compressed bytes.Buffer
		w, err := flate.NewWriter(&compressed, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for name, content := range contents(t, b.tree(s)) {
			if seen[content] {
				t.Errorf("%s: the content of %s is there twice", s, name)
			}
			seen[content] = true
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		// Noise stays what it is, text shrinks to between a quarter and a half.
		if share := float64(compressed.Len()) / float64(s.bytes()); share < 0.6 || share > 0.77 {
			t.Errorf("%s is compressed to %.2f of its size", s, share)
		}
	}
}

func TestTheBareEngineKeepsATree(t *testing.T) {
	s := small(200)
	b := newBench(t, s)
	o := engineOptions{
		source: b.tree(s), repository: filepath.Join(t.TempDir(), "repository"), work: t.TempDir(), compression: "zstd-fastest", splitter: "DYNAMIC-1M-BUZHASH", hash: "BLAKE3-256-128", password: "password",
		create: true, parallel: 2,
	}
	if err := os.Mkdir(o.repository, 0o700); err != nil {
		t.Fatal(err)
	}
	sizes := make([]int64, 2)
	for i := range sizes {
		if err := o.snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		var err error
		if sizes[i], err = sizeOf(o.repository); err != nil {
			t.Fatal(err)
		}
		o.create, o.work = false, t.TempDir()
	}
	if sizes[0] < s.bytes()/2 || sizes[1] > sizes[0]+s.bytes()/20 {
		t.Errorf("a tree of %d bytes is stored in %d bytes, and unchanged in %d", s.bytes(), sizes[0], sizes[1])
	}
	o.source = filepath.Join(b.dir, "missing")
	if err := o.snapshot(t.Context()); err == nil {
		t.Error("a source that is missing is no error")
	}
}

func TestWhatFailsIsNotMeasured(t *testing.T) {
	b := newBench(t, small(1))
	if _, err := b.cost(b.dir, exec.CommandContext(context.Background(), "false")); err == nil {
		t.Error("a program that fails was measured")
	}
	used, err := b.cost(b.dir, exec.CommandContext(t.Context(), "true"), exec.CommandContext(t.Context(), "true"))
	if err != nil || used.Wall <= 0 || used.Peak <= 0 {
		t.Errorf("got %+v, %v", used, err)
	}
}

func TestTheMedianDecidesAboutGoals(t *testing.T) {
	s := small(100)
	b := &bench{shapes: []shape{s}, programs: []program{&ours{}, &engine{compressor: "zstd"}, &engine{compressor: "none"}, &restic{}}}
	measured := func(step, program string, wall time.Duration, stored int64) sample {
		return sample{
			Shape: s.Name, Step: step, Program: program, Stored: stored,
			Run: usage{Wall: wall, CPU: wall, Peak: 200 << 20}, Verify: usage{Wall: wall / 20, CPU: wall / 20, Peak: 100 << 20},
		}
	}
	good := samples{
		measured(firstRun, "slipway-backup", 10*time.Second, 102), measured(firstRun, "bare engine, zstd", 10*time.Second, 100),
		measured(firstRun, "bare engine, none", time.Second, 100), measured(firstRun, "restic", 10*time.Second, 100),
	}
	tests := []struct {
		name       string
		scheduling time.Duration
		change     func(samples)
		missed     string // what of the goals' names; empty: none
	}{
		{name: "all are met", change: func(samples) {}},
		{name: "slower than the engine", change: func(m samples) { m[1].Run.Wall = 9 * time.Second }, missed: "engine"},
		{name: "slower than the engine with scheduling", scheduling: time.Second, change: func(samples) {}, missed: "engine"},
		{name: "verification takes too long", change: func(m samples) { m[0].Verify.Wall = 2 * time.Second }, missed: "verification"},
		{name: "slower than restic", change: func(m samples) { m[3].Run.Wall = 9 * time.Second }, missed: "time beside restic"},
		{name: "stores more than restic", change: func(m samples) { m[0].Stored = 104 }, missed: "stored"},
		{name: "memory of the run", change: func(m samples) { m[0].Run.Peak = 301 << 20 }, missed: "memory"},
		{name: "memory of verification", change: func(m samples) { m[0].Verify.Peak = 301 << 20 }, missed: "memory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.scheduling = tt.scheduling
			results := append(samples{}, good...)
			tt.change(results)
			goals := b.goals(results)
			if len(goals) != 5 {
				t.Fatalf("%d goals: %+v", len(goals), goals)
			}
			for _, g := range goals {
				if want := tt.missed == "" || !strings.Contains(g.what, tt.missed); g.met != want {
					t.Errorf("%s (%s, measured %s): met is %t", g.what, g.goal, g.measured, g.met)
				}
			}
		})
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "0"}, {"-small-files", "0", "-large-files", "0"}, {"-parallel", "0"}, {"more"}, {"-restic", "/nowhere/restic"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
