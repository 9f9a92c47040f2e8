package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// password is that of every repository. It protects nothing.
const password = "backupbench backupbench"

// place is where a program works in one round.
type place struct {
	source     string
	repository string
	work       string // for caches and configuration
}

// program is something that makes snapshots.
type program interface {
	name() string
	// snapshot are the commands that make a snapshot, one after the other. The first snapshot makes the repository.
	snapshot(ctx context.Context, p place, o step) ([]*exec.Cmd, error)
}

// step is what a program shall do.
type step struct {
	run string // its name
	// first makes the repository.
	first bool
	// young says that files are so young that slipway-backup would read them again.
	young bool
}

// programs are all that are measured.
func programs(slipway, resticProgram string, compressors []string, parallel int) ([]program, error) {
	slipway, err := filepath.Abs(slipway)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	env := append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(parallel))
	all := []program{&ours{binary: slipway, parallel: parallel, env: env}}
	for _, compressor := range compressors {
		all = append(all, &engine{binary: self, compressor: compressor, parallel: parallel, env: env})
	}
	if resticProgram == "" {
		return all, nil
	}
	found, err := exec.LookPath(resticProgram)
	return append(all, &restic{binary: found, env: env}), err
}

// ours is slipway-backup.
type ours struct {
	binary   string
	parallel int
	env      []string
}

func (*ours) name() string { return "slipway-backup" }

func (o *ours) snapshot(ctx context.Context, p place, s step) ([]*exec.Cmd, error) {
	command, err := o.command(ctx, p, s, "snapshot")
	return []*exec.Cmd{command}, err
}

// samplePercent is how much of the files is read back where a Backup says Sample.
const samplePercent = 5

// verify reads back what Sample does.
func (o *ours) verify(ctx context.Context, p place, s step) (*exec.Cmd, error) {
	return o.command(ctx, p, s, "verify")
}

func (o *ours) command(ctx context.Context, p place, s step, what string) (*exec.Cmd, error) {
	raw, err := json.Marshal(mover.Config{
		Repository: mover.Repository{
			Filesystem: &mover.Filesystem{Path: p.repository}, EncryptionFolder: p.work, WorkFolder: p.work,
			Create: s.first && what == "snapshot",
		},
		Snapshot: mover.Snapshot{Source: p.source, Run: s.run, Volume: "data", Parallel: o.parallel, IgnoreChangeTime: s.young},
		Verify:   mover.Verify{Run: s.run, ReadPercent: samplePercent, Parallel: o.parallel},
	})
	if err != nil {
		return nil, err
	}
	config := filepath.Join(p.work, what+".json")
	err = errors.Join(os.WriteFile(config, raw, 0o600), os.WriteFile(filepath.Join(p.work, "password"), []byte(password), 0o600))
	command := exec.CommandContext(ctx, o.binary, "--config", config, "--result", filepath.Join(p.work, "result.json"), what)
	command.Env = o.env
	return command, err
}

// engine is the bare library.
type engine struct {
	binary     string
	compressor string
	parallel   int
	env        []string
}

func (e *engine) name() string { return "bare engine, " + e.compressor }

func (e *engine) snapshot(ctx context.Context, p place, s step) ([]*exec.Cmd, error) {
	if s.first {
		if err := os.Mkdir(p.repository, 0o700); err != nil {
			return nil, err
		}
	}
	command := exec.CommandContext(ctx, e.binary, "engine", "-source", p.source, "-repository", p.repository, "-work", p.work,
		"-compression", e.compressor, "-parallel", strconv.Itoa(e.parallel), "-create="+strconv.FormatBool(s.first))
	command.Env = slices.Concat(e.env, []string{"BENCH_PASSWORD=" + password})
	return []*exec.Cmd{command}, nil
}

// restic is the program of that name.
type restic struct {
	binary string
	env    []string
}

func (*restic) name() string { return "restic" }

// snapshot leaves everything at restic's defaults. Its cache stays between the two snapshots of a round, while ours is empty
// each time, as it is in a pod.
func (r *restic) snapshot(ctx context.Context, p place, s step) ([]*exec.Cmd, error) {
	command := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, r.binary, args...)
		c.Env = slices.Concat(r.env, []string{
			"RESTIC_PASSWORD=" + password, "RESTIC_REPOSITORY=" + p.repository,
			"RESTIC_CACHE_DIR=" + filepath.Join(filepath.Dir(p.work), "restic-cache"),
		})
		return c
	}
	var commands []*exec.Cmd
	if s.first {
		commands = append(commands, command("init", "--quiet"))
	}
	return append(commands, command("backup", "--quiet", p.source)), nil
}

// version is what a program says of itself.
func version(ctx context.Context, p program) string {
	var command *exec.Cmd
	switch p := p.(type) {
	case *ours:
		command = exec.CommandContext(ctx, p.binary, "--version")
	case *restic:
		command = exec.CommandContext(ctx, p.binary, "version")
	default:
		return ""
	}
	out, err := command.Output()
	if err != nil {
		return fmt.Sprintf("version unknown: %v", err)
	}
	return string(out)
}
