//go:build monitortest

package recorder

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	childDir    = "RECORDER_CHILD_DIR"
	childRounds = 12
	killSeed    = 99
	killLength  = 4000
)

func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := child(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is the process that TestKill kills.
func child(ctx context.Context, dir string) error {
	r, _, err := openFolder(ctx, dir, nil)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), 4))
	err = newHistory(killSeed, killLength).play(ctx, r, random, func(version int) { _, _ = fmt.Fprintln(os.Stdout, version) })
	if err != nil {
		return err
	}
	return r.Close(ctx)
}

// A process that is killed at any moment goes on, and nothing is missing, twice, or in the wrong order.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(5, 6))
	for round := range childRounds {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), childDir+"="+dir)
		said := &strings.Builder{}
		process.Stderr = said
		stdout, err := process.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		for after := random.IntN(killLength / childRounds); after > 0 && lines.Scan(); after-- {
			if _, err := strconv.Atoi(lines.Text()); err != nil {
				t.Fatalf("round %d: the process says %q", round, lines.Text())
			}
		}
		if err := process.Process.Kill(); err != nil {
			t.Logf("round %d: %v", round, err)
		}
		_ = process.Wait() // it was killed
		if process.ProcessState.Exited() && !process.ProcessState.Success() {
			t.Fatalf("round %d: the process ended by itself: %s", round, said)
		}
	}
	h := newHistory(killSeed, killLength)
	for _, problem := range playAll(t, h, dir, random, nil) {
		t.Error(problem)
	}
}

// A change is durable soon, and many are at a time.
func TestThroughput(t *testing.T) {
	ctx := t.Context()
	r, s := open(ctx, t, t.TempDir(), nil)
	h := newHistory(11, 4000)
	begin := time.Now()
	h.playOnce(ctx, t, r)
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	t.Logf("%d changes in %s: %.0f/s", len(h.events), took, float64(len(h.events))/took.Seconds())
	if got := s.Stats().Changes; got < int64(len(h.events)) {
		t.Errorf("%d changes are stored, and there were %d", got, len(h.events))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
