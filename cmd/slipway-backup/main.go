// Command slipway-backup keeps a volume in a repository, and brings it back. It knows no Kubernetes: a Job of a Backup or a
// Restore runs it, and so can anybody.
//
//	choose.go    which copies a restore takes, and which a retention removes
//	commands.go  the commands that work on a repository
//	config.go    reading the configuration file and the secrets
//	drill.go     a drill: restores copies to a scratch volume and compares them
//	dump.go      the commands that run a user's command in its container and pass on its output
//	exit.go      exit codes
//	main.go      main: flags, signals, and which command runs
//	result.go    what a command says at its end, short enough for a container's termination message
//	run.go       running a command of the repository, its progress and its result
//	scrub.go     taking secrets out of everything that is written
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	// The image has no CA roots. Where a system has some, those are used.
	_ "golang.org/x/crypto/x509roots/fallback"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/memory"
)

// version is set by the linker.
var version = "dev"

func main() {
	if len(os.Args) > 1 && (os.Args[1] == commandDump || os.Args[1] == commandInstall) {
		os.Exit(beside(os.Args[1:]))
	}
	flags := pflag.NewFlagSet("slipway-backup", pflag.ContinueOnError)
	configFile := flags.String("config", "", "file with the configuration in JSON: docs/disaster-recovery.md")
	resultFile := flags.String("result", "/dev/termination-log",
		"file that the result is written to, as JSON of at most 4 KiB; empty for none")
	interval := flags.Duration("progress", 30*time.Second, "how often to write a line of progress")
	timeout := flags.Duration("storage-timeout", 0, "how long one call of the storage may take, with all its retries (default 10m)")
	showVersion := flags.Bool("version", false, "print the version and exit")
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage: slipway-backup (%s) --config FILE\n"+
			"       slipway-backup dump --socket FILE -- COMMAND\n       slipway-backup install FILE\n%s", strings.Join(commandNames(),
			"|"), flags.FlagUsages())
	}
	if err := flags.Parse(os.Args[1:]); err != nil {
		if err != pflag.ErrHelp { //nolint:errorlint // pflag returns it as it is
			fmt.Fprintln(os.Stderr, "slipway-backup:", err)
		}
		os.Exit(exitInvalid)
	}
	if *showVersion {
		fmt.Println(version)
		return
	}
	if flags.NArg() != 1 || !slices.Contains(commandNames(), flags.Arg(0)) || *configFile == "" || *interval <= 0 || *timeout < 0 {
		flags.Usage()
		os.Exit(exitInvalid)
	}
	if err := memory.KeepBelowLimit(); err != nil {
		fmt.Fprintln(os.Stderr, "slipway-backup: the container's memory limit is unknown, Go does not keep below it:", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	p := program{output: os.Stdout, resultFile: *resultFile, interval: *interval, timeout: *timeout, clock: clock.RealClock{}}
	os.Exit(p.run(ctx, flags.Arg(0), *configFile))
}

// beside runs a command that needs no configuration.
func beside(arguments []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return runBeside(ctx, arguments, os.Stdout)
}
