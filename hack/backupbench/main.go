// Command backupbench measures slipway-backup beside the bare engine (the library of kopia, with nothing around it) and beside
// restic, in turns, and prints what it found as Markdown. `make bench-backup` runs it; docs/performance.md says how to read it.
//
//	engine.go    the bare engine, which this program is when it is started as a child
//	goals.go     the goals, and whether each was met
//	main.go      flags, and the order of everything
//	measure.go   measuring the steps, round by round
//	programs.go  the programs that are measured, and how each is called
//	report.go    the report as Markdown
//	tree.go      the trees of files that are backed up, and their changes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// bench is a run of everything.
type bench struct {
	dir        string // for trees, repositories and caches
	programs   []program
	shapes     []shape
	rounds     int
	cold       bool
	scheduling time.Duration
	keep       bool
	out        string
	progress   io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "backupbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "engine" {
		return engineMain(ctx, args[1:])
	}
	b, err := parse(args)
	if err != nil {
		return err
	}
	if err := b.prepare(); err != nil {
		return err
	}
	if err := b.makeTrees(ctx); err != nil {
		return err
	}
	results, err := b.measureAll(ctx)
	if !b.keep {
		err = errors.Join(err, b.removeTrees())
	}
	return errors.Join(err, b.report(out, results))
}

func parse(args []string) (*bench, error) {
	b := &bench{progress: os.Stderr}
	flags := flag.NewFlagSet("backupbench", flag.ContinueOnError)
	slipway := flags.String("slipway", "bin/slipway-backup", "program of slipway-backup")
	resticProgram := flags.String("restic", "restic", "program of restic; empty leaves it out")
	compressors := flags.String("engine", "zstd,none",
		"compression of the bare engine: the first as slipway-backup compresses, others for comparison")
	smallFiles := flags.Int("small-files", 100_000, "how many small files; 0 leaves them out")
	largeFiles := flags.Int("large-files", 10, "how many large files; 0 leaves them out")
	largeSize := flags.Int64("large-mib", 1024, "size of each large file, in MiB")
	parallel := flags.Int("parallel", runtime.NumCPU(),
		"how many files slipway-backup and the bare engine read at a time, and GOMAXPROCS of all programs; restic reads two")
	flags.StringVar(&b.dir, "dir", "bin/bench-backup",
		"folder for trees, repositories and caches, on the file system to measure; needs four times the size of the largest tree")
	flags.IntVar(&b.rounds, "rounds", 3, "how often each is measured")
	flags.BoolVar(&b.cold, "cold", false,
		"drop the caches of the system before each measurement; needs the root user. Without it the tree is read before each measurement")
	flags.DurationVar(&b.scheduling, "scheduling", 0,
		"how long a run takes besides its two processes: pods, status, Jobs; added to the time of slipway-backup where the goal counts it")
	flags.BoolVar(&b.keep, "keep", false, "keep the trees for the next time")
	flags.StringVar(&b.out, "out", "", "append the results to this file, as a JSON object in a line")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case b.rounds < 1, *smallFiles < 0, *largeFiles < 0, *largeSize < 1, *parallel < 1, b.scheduling < 0:
		return nil, errors.New("a number is too small")
	case *smallFiles+*largeFiles == 0:
		return nil, errors.New("there is nothing to measure")
	}
	if *smallFiles > 0 {
		b.shapes = append(b.shapes, small(*smallFiles))
	}
	if *largeFiles > 0 {
		b.shapes = append(b.shapes, large(*largeFiles, *largeSize<<20))
	}
	var err error
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return nil, err
	}
	b.programs, err = programs(*slipway, *resticProgram, strings.Split(*compressors, ","), *parallel)
	return b, err
}

// prepare refuses what would fail later.
func (b *bench) prepare() error {
	if b.cold && os.Getuid() != 0 {
		return errors.New("-cold needs the root user")
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(b.dir, &fs); err != nil {
		return err
	}
	var biggest int64
	for _, s := range b.shapes {
		biggest = max(biggest, s.bytes())
	}
	needed := biggest * int64(len(b.programs)+1)
	if free := int64(fs.Bavail) * fs.Bsize; free < needed {
		return fmt.Errorf("%s has %d MiB free, %d MiB are needed", b.dir, free>>20, needed>>20)
	}
	return nil
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// baseline names the bare engine that has the settings of slipway-backup.
func (b *bench) baseline() string {
	for _, p := range b.programs {
		if e, ok := p.(*engine); ok {
			return e.name()
		}
	}
	return ""
}
