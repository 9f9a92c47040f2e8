package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The steps of a round.
const (
	firstRun   = "first run"
	onePercent = "1 % changed"
)

// sample is what was measured of one program in one step of one round.
type sample struct {
	Shape   string
	Step    string
	Program string
	Round   int
	// Run is what making the snapshot cost. On a first run that includes making the repository.
	Run usage
	// Verify is what verifying it cost, in another process. Only slipway-backup does that.
	Verify usage
	// Stored is the size of the repository, in bytes.
	Stored int64
	// Young says that the tree was so young that slipway-backup was told to ignore change times.
	Young bool
}

// usage is what processes cost.
type usage struct {
	// Wall lasts until what was written is on disk.
	Wall time.Duration
	CPU  time.Duration
	// Peak is the most memory that one of them had resident, in bytes.
	Peak int64
}

// measureAll measures round by round, so that all programs see the same moods of the machine.
func (b *bench) measureAll(ctx context.Context) ([]sample, error) {
	var results []sample
	for round := range b.rounds {
		for _, s := range b.shapes {
			measured, err := b.round(ctx, s, round)
			results = append(results, measured...)
			if err != nil {
				return results, fmt.Errorf("round %d, %s: %w", round+1, s, err)
			}
		}
	}
	return results, nil
}

// round makes the first snapshot with every program, changes the tree, and makes another one with every program.
func (b *bench) round(ctx context.Context, s shape, round int) ([]sample, error) {
	folder := filepath.Join(b.dir, "round")
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	made, err := b.state(s)
	if err != nil {
		return nil, err
	}
	// A file whose change time is not at least 15 minutes before the earlier snapshot is read again by slipway-backup,
	// because clocks differ. Volumes are older than that.
	young := time.Since(made.Made) < 16*time.Minute
	var results []sample
	for _, name := range []string{firstRun, onePercent} {
		for i := range b.programs {
			p := b.programs[(i+round)%len(b.programs)] // another one begins each time
			measured, err := b.measure(ctx, s, p, filepath.Join(folder, fmt.Sprint((i+round)%len(b.programs))), step{
				run: fmt.Sprintf("run-%t", name == firstRun), first: name == firstRun, young: young,
			})
			if err != nil {
				return results, fmt.Errorf("%s, %s: %w", name, p.name(), err)
			}
			measured.Step, measured.Round = name, round
			b.say("round %d, %s, %s: %s", round+1, s, name, measured)
			results = append(results, measured)
		}
		if name == firstRun {
			if err := b.changeTree(ctx, s); err != nil {
				return results, err
			}
		}
	}
	return results, nil
}

// measure lets a program make a snapshot.
func (b *bench) measure(ctx context.Context, s shape, p program, folder string, o step) (sample, error) {
	result := sample{Shape: s.Name, Program: p.name(), Young: o.young}
	at := place{source: b.tree(s), repository: filepath.Join(folder, "repository"), work: filepath.Join(folder, "work")}
	// The cache of a pod is empty when it begins.
	if err := errors.Join(os.RemoveAll(at.work), os.MkdirAll(at.work, 0o700)); err != nil {
		return result, err
	}
	commands, err := p.snapshot(ctx, at, o)
	if err != nil {
		return result, err
	}
	if result.Run, err = b.cost(at.source, commands...); err != nil {
		return result, err
	}
	if p, ok := p.(*ours); ok {
		verify, err := p.verify(ctx, at, o)
		if err != nil {
			return result, err
		}
		if result.Verify, err = b.cost(at.source, verify); err != nil {
			return result, err
		}
	}
	result.Stored, err = sizeOf(at.repository)
	return result, err
}

// cost runs commands one after the other. The caches of the system are the same before it, whatever ran last.
func (b *bench) cost(source string, commands ...*exec.Cmd) (usage, error) {
	var total usage
	if err := errors.Join(syncDisk(b.dir), b.cachesOfSystem(source)); err != nil {
		return total, err
	}
	start := time.Now()
	for _, command := range commands {
		var said bytes.Buffer
		command.Stdout, command.Stderr = &said, &said
		if err := command.Run(); err != nil {
			return total, fmt.Errorf("%s: %w: %s", command, err, lastOf(said.String(), 2000))
		}
		total.CPU += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
		// The kernel begins with what this process had when it started the other: that is a few MiB.
		if used, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			total.Peak = max(total.Peak, used.Maxrss<<10)
		}
	}
	err := syncDisk(b.dir)
	total.Wall = time.Since(start)
	return total, err
}

// cachesOfSystem drops them, or fills them with the source.
func (b *bench) cachesOfSystem(source string) error {
	if b.cold {
		return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
	}
	return readTree(source)
}

// syncDisk writes the file system of a folder to disk.
func syncDisk(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

func lastOf(text string, length int) string { return text[max(0, len(text)-length):] }
