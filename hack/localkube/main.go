//go:build linux

// Command localkube runs a real single-node Kubernetes on this machine, built
// from Go modules. It needs no container engine and no registry, and downloads
// only Go modules and Debian packages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/component"
	"github.com/slipway-dev/slipway/hack/localkube/lifecycle"
)

const usage = `Run a real single-node Kubernetes on this machine.

Usage: localkube <command> [flags]

Commands:
  up                    start the cluster, or repair it; does nothing when all is well
  down                  end it and remove every trace of it but the cache
  status                say what runs; the exit code is 1 when the cluster cannot be used
  load <image.tar>...   load image archives into the node
  kubeconfig            print the path of the administrator's kubeconfig
  logs                  print the folder that holds the log of each program, such as kube-controller-manager.log
  assets                build etcd, kube-apiserver and kubectl for envtest, and print their folder

Flags:
`

type options struct {
	name, state, cache string
	fsync, leftover    bool
	arguments          []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "localkube:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		arguments = []string{"help"}
	}
	// A user's PATH often lacks the folders that hold programs such as ip and nft.
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin"); err != nil {
		return err
	}
	command := arguments[0]
	parsed, err := parse(command, arguments[1:])
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	switch command {
	case "up":
		return lifecycle.Up(ctx, lifecycle.Options{
			Name: parsed.name, Root: parsed.state, Cache: parsed.cache, Fsync: parsed.fsync, Progress: os.Stderr,
		})
	case "down":
		return lifecycle.Down(ctx, parsed.state, parsed.name, parsed.leftover, os.Stderr)
	case "status":
		return lifecycle.Status(ctx, parsed.state, parsed.name, os.Stdout)
	case "load":
		return lifecycle.Load(ctx, parsed.state, parsed.name, parsed.arguments, os.Stderr)
	case "kubeconfig":
		return printLine(lifecycle.Kubeconfig(parsed.state, parsed.name))
	case "logs":
		return printLine(lifecycle.Logs(parsed.state, parsed.name))
	case "assets":
		return printLine(assets(ctx, parsed.cache))
	case "supervise":
		return lifecycle.Supervise(ctx, parsed.state, parsed.name)
	case "balance":
		return lifecycle.Balance(ctx, parsed.state, parsed.name)
	default:
		return fmt.Errorf("unknown command %q; localkube help lists them", command)
	}
}

func parse(command string, arguments []string) (options, error) {
	var parsed options
	flags := flag.NewFlagSet("localkube "+command, flag.ContinueOnError)
	flags.StringVar(&parsed.name, "name", "slipway", "name of the cluster; clusters of different names run side by side")
	flags.StringVar(&parsed.state, "state-dir", cluster.DefaultRoot, "folder for the clusters' state, one folder each")
	flags.StringVar(&parsed.cache, "cache-dir", "",
		"folder for built programs (default: $SLIPWAY_CACHE, or slipway in the user's cache folder)")
	flags.BoolVar(&parsed.fsync, "fsync", false, "let the database write through to the disk: slower, but data survive a power cut")
	flags.BoolVar(&parsed.leftover, "leftover", false,
		"down: remove only what a killed run left; refuse a cluster of which a program still runs")
	flags.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		flags.PrintDefaults()
	}
	if command == "help" || command == "-h" || command == "--help" {
		flags.Usage()
		return parsed, flag.ErrHelp
	}
	if err := flags.Parse(arguments); err != nil {
		return parsed, err
	}
	parsed.arguments = flags.Args()
	if err := check(command, parsed); err != nil {
		return parsed, err
	}
	var err error
	if parsed.cache == "" {
		if parsed.cache, err = component.DefaultCache(); err != nil {
			return parsed, err
		}
	}
	// Other tools of the project use the same cache folder, so localkube takes a subfolder.
	if parsed.cache, err = filepath.Abs(filepath.Join(parsed.cache, "localkube")); err != nil {
		return parsed, err
	}
	parsed.state, err = filepath.Abs(parsed.state)
	return parsed, err
}

func check(command string, parsed options) error {
	if command == "load" && len(parsed.arguments) == 0 {
		return errors.New("load needs at least one image archive")
	}
	if command != "load" && len(parsed.arguments) > 0 {
		return fmt.Errorf("unexpected argument %q", parsed.arguments[0])
	}
	return cluster.CheckName(parsed.name)
}

func assets(ctx context.Context, cache string) (string, error) {
	sources, err := component.FindSources()
	if err != nil {
		return "", err
	}
	builder := component.Builder{Sources: sources, Cache: cache, Progress: os.Stderr}
	return builder.Assets(ctx)
}

func printLine(line string, err error) error {
	if err != nil {
		return err
	}
	fmt.Println(line)
	return nil
}
