//go:build backuptest

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

var (
	kills = flag.Int("kills", 20, "how many processes to kill")
	seed  = flag.Uint64("kill-seed", 1, "chooses what happens")
)

// TestNothingCompletedIsLost kills slipway-backup at random moments of all that it does. Every snapshot that was reported as
// completed, and verified, restores byte by byte, and nothing in the repository is damaged.
func TestNothingCompletedIsLost(t *testing.T) {
	c := newCampaign(t)
	for reported := 0; c.killed < *kills; {
		if c.round(); c.killed >= reported+100 {
			reported = c.killed
			t.Logf("%d killed", reported)
		}
	}
	c.restoreAll()
	t.Logf("measured: seed %d: %d processes killed, %v; %d ended by themselves; %d snapshots completed, %d of them by a killed process; %d expired; %d bytes freed; %s",
		*seed, c.killed, c.killedIn, c.ended, c.completed, c.adopted, c.expired, c.freed, c.ahead.Round(time.Hour))
	if *kills >= 200 && (c.freed == 0 || c.expired == 0 || len(c.killedIn) < 5) {
		t.Error("something never happened, so the test proves less than it says")
	}
}

// campaign is a repository, what is known to be in it, and chance.
type campaign struct {
	*bench
	t      *testing.T
	random *rand.Rand
	ahead  time.Duration
	runs   int

	held     map[string]map[string]string // snapshot → path → content, of what has to be there
	leaving  map[string]bool              // told to expire: there or not
	duration map[string]time.Duration     // of a command that is not killed, about

	killed, ended, completed, adopted, expired int
	killedIn                                   map[string]int
	freed                                      int64
}

func newCampaign(t *testing.T) *campaign {
	c := &campaign{
		bench: newBench(t), t: t, random: rand.New(rand.NewPCG(*seed, *seed)),
		held: map[string]map[string]string{}, leaving: map[string]bool{}, killedIn: map[string]int{}, duration: map[string]time.Duration{},
	}
	for i := range 24 {
		c.change(i)
	}
	c.config.Repository.Create = true
	c.config.Snapshot.Run = "run-0"
	id := c.finish("snapshot").RepositoryID
	c.config.Repository.Create, c.config.Repository.ID = false, id
	c.accept("run-0")
	return c
}

// change writes a file of the source anew.
func (c *campaign) change(number int) {
	content := make([]byte, c.random.IntN(256<<10))
	_, _ = rand.NewChaCha8([32]byte{byte(c.random.Uint32()), byte(c.random.Uint32()), byte(c.random.Uint32())}).Read(content)
	c.write(c.t, fmt.Sprintf("source/%d/%d", number%5, number), string(content))
}

// round lets some time pass, does something, and kills it or not.
func (c *campaign) round() {
	c.ahead += time.Duration(c.random.IntN(20)) * time.Hour
	switch chance := c.random.IntN(100); {
	case chance < 40:
		c.snapshot()
	case chance < 50:
		c.config.Verify = mover.Verify{ReadPercent: 100}
		c.attempt("verify")
	case chance < 65:
		c.expire()
	case chance < 90:
		c.maintain()
	default:
		c.restore()
	}
	c.check()
}

func (c *campaign) snapshot() {
	for range 6 {
		c.change(c.random.IntN(24))
	}
	c.runs++
	run := fmt.Sprintf("run-%d", c.runs)
	c.config.Snapshot.Run = run
	_, killed := c.attempt("snapshot")
	c.config.List.Run = run
	there := c.finish("list").SnapshotCount == 1
	c.config.List.Run = ""
	switch {
	case !killed && !there:
		c.t.Fatal("a snapshot was reported and is not there")
	case killed && there:
		c.adopted++
	case !there:
		return
	}
	c.accept(run)
}

// accept verifies a snapshot in another process. From then on it has to be there.
func (c *campaign) accept(run string) {
	c.config.Verify = mover.Verify{Run: run, ReadPercent: 100}
	id := c.finish("verify").Snapshots[0].ID
	c.held[id] = contents(c.t, c.path("source"))
	c.completed++
}

func (c *campaign) expire() {
	reported := slices.Sorted(maps.Keys(c.leaving))
	ids := slices.Sorted(maps.Keys(c.held))
	c.random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for len(ids) > 4 {
		reported = append(reported, ids[0])
		delete(c.held, ids[0])
		c.leaving[ids[0]] = true
		ids = ids[1:]
	}
	c.config.Expire.Snapshots = reported
	if _, killed := c.attempt("expire"); !killed {
		c.expired += len(reported)
		clear(c.leaving)
	}
}

func (c *campaign) maintain() {
	if r, killed := c.attempt("maintain"); !killed {
		c.freed += max(0, r.Maintain.BytesBefore-r.Maintain.BytesAfter)
	}
}

// restore restores a snapshot, and again over what a killed process left.
func (c *campaign) restore() {
	ids := slices.Sorted(maps.Keys(c.held))
	id := ids[c.random.IntN(len(ids))]
	target := c.target()
	c.config.Restore = mover.Restore{Snapshot: id, Target: target}
	if _, killed := c.attempt("restore"); killed {
		c.config.Restore.Overwrite = true
		c.finish("restore")
	}
	c.compare(id, target)
}

func (c *campaign) target() string {
	target := c.path("target")
	if err := errors.Join(os.RemoveAll(target), os.Mkdir(target, 0o755)); err != nil {
		c.t.Fatal(err)
	}
	return target
}

func (c *campaign) compare(id, target string) {
	if diff := cmp.Diff(c.held[id], contents(c.t, target)); diff != "" {
		c.t.Fatalf("seed %d: after %d kills the snapshot %s restores something else:\n%s", *seed, c.killed, id, diff)
	}
}

// check looks at everything with an empty cache: what is held is there, what is there is whole, nothing else is there.
func (c *campaign) check() {
	r := c.open()
	defer r.Close(context.Background())
	verified, err := r.Verify(c.t.Context(), engine.VerifyOptions{ReadPercent: 100})
	if err != nil {
		c.t.Fatalf("seed %d: after %d kills: %v", *seed, c.killed, err)
	}
	there := map[string]bool{}
	for _, s := range verified.Snapshots {
		there[s.ID] = true
		if c.held[s.ID] == nil && !c.leaving[s.ID] {
			c.t.Fatalf("seed %d: after %d kills there is %s, which nobody made or which expired", *seed, c.killed, s.ID)
		}
	}
	for id := range c.held {
		if !there[id] {
			c.t.Fatalf("seed %d: after %d kills the snapshot %s is gone", *seed, c.killed, id)
		}
	}
}

func (c *campaign) restoreAll() {
	r := c.open()
	defer r.Close(context.Background())
	for id := range c.held {
		target := c.target()
		if _, err := r.Restore(c.t.Context(), engine.RestoreOptions{Snapshot: id, Target: target}); err != nil {
			c.t.Fatal(err)
		}
		c.compare(id, target)
	}
}

func (c *campaign) open() *engine.Repository {
	options, err := optionsOf(c.config.Repository)
	if err != nil {
		c.t.Fatal(err)
	}
	options.Clock = aheadClock{c.ahead}
	r, err := engine.Open(c.t.Context(), options)
	if err != nil {
		c.t.Fatalf("seed %d: after %d kills: %v", *seed, c.killed, err)
	}
	return r
}

// finish runs a command to its end, in another process, which has to go well.
func (c *campaign) finish(command string) result {
	r, killed := c.process(command, 0)
	if killed {
		c.t.Fatalf("%s was killed by somebody else", command)
	}
	return r
}

// attempt runs a command and kills it at a random moment, unless it has ended by then.
func (c *campaign) attempt(command string) (result, bool) {
	expected := c.duration[command]
	if expected == 0 {
		expected = 500 * time.Millisecond
	}
	after := expected * time.Duration(300+c.random.IntN(1100)) / 1000
	if c.random.IntN(10) == 0 {
		after /= 10 // while it starts
	}
	r, killed := c.process(command, after)
	if killed {
		c.killed++
		c.killedIn[command]++
	} else {
		c.ended++
	}
	return r, killed
}

// process runs the test program as slipway-backup. With a time it is killed after that.
func (c *campaign) process(command string, after time.Duration) (result, bool) {
	file := c.path("result.json")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		c.t.Fatal(err)
	}
	var output bytes.Buffer
	process := exec.CommandContext(c.t.Context(), os.Args[0], command, c.configFile(c.t), file)
	process.Env = append(os.Environ(), helperVariable+"=yes", aheadVariable+"="+c.ahead.String())
	process.Stdout, process.Stderr = &output, &output
	start := time.Now()
	if err := process.Start(); err != nil {
		c.t.Fatal(err)
	}
	if after > 0 {
		killer := time.AfterFunc(after, func() { _ = process.Process.Kill() })
		defer killer.Stop()
	}
	err := process.Wait()
	c.removeCaches()
	if !process.ProcessState.Exited() {
		return result{}, true
	}
	c.duration[command] = (3*c.duration[command] + time.Since(start)) / 4
	if c.duration[command] < time.Since(start)/2 {
		c.duration[command] = time.Since(start)
	}
	var o outcome
	o.read(c.t, file)
	if err != nil || !o.result.OK {
		c.t.Fatalf("seed %d: after %d kills %s failed: %v\n%s", *seed, c.killed, command, err, output.String())
	}
	return o.result, false
}

// removeCaches removes what a killed process left beside the repository, as the end of its pod would.
func (c *campaign) removeCaches() {
	left, err := filepath.Glob(c.path("slipway-repository-*"))
	for _, folder := range left {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
