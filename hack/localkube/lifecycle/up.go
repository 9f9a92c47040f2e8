// Package lifecycle starts a cluster, removes it and reports its status.
//
//	cgroups.go  the control groups of the cluster's pods
//	down.go     ending the cluster and removing its traces
//	host.go     what the machine needs, and installing Debian packages
//	settle.go   waiting until the cluster can be used
//	status.go   telling what runs, and loading images
//	up.go       starting the cluster, and its supervisor
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/hack/localkube/api"
	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/component"
	"github.com/slipway-dev/slipway/hack/localkube/loadbalancer"
	"github.com/slipway-dev/slipway/hack/localkube/network"
	"github.com/slipway-dev/slipway/hack/localkube/pki"
	"github.com/slipway-dev/slipway/hack/localkube/process"
	"github.com/slipway-dev/slipway/hack/localkube/render"
	"github.com/slipway-dev/slipway/hack/localkube/supervise"
)

// Options say what to bring up.
type Options struct {
	Name     string
	Root     string
	Cache    string
	Fsync    bool
	Progress io.Writer
}

// Up makes the cluster run, whatever state it is in.
func Up(ctx context.Context, options Options) error {
	if err := CheckHost(); err != nil {
		return err
	}
	if err := EnsurePackages(ctx, options.Progress); err != nil {
		return err
	}
	programs, err := build(ctx, options)
	if err != nil {
		return err
	}

	unlock, err := cluster.Lock(ctx, lockName(options.Root, options.Name), options.Progress)
	if err != nil {
		return err
	}
	defer unlock()
	started := time.Now()
	c, err := cluster.Load(options.Root, options.Name)
	if err == nil && unchanged(c, programs, options.Fsync) && recovers(ctx, c, options.Progress) {
		printUse(options.Progress, c)
		return nil
	}
	if err != nil && !errors.Is(err, cluster.ErrNone) {
		return err
	}
	if errors.Is(err, cluster.ErrNone) {
		c = cluster.Cluster{Name: options.Name, Root: options.Root, Slot: -1}
	}
	c.Programs, c.Fsync = programs, options.Fsync
	if err := start(ctx, c, options.Progress); err != nil {
		return err
	}
	fmt.Fprintf(options.Progress, "cluster %s is up after %s\n", options.Name, time.Since(started).Round(100*time.Millisecond))
	return nil
}

// networkLock guards what all clusters of a machine share.
const networkLock = "network"

func lockName(root, name string) string { return "cluster " + filepath.Join(root, name) }

func build(ctx context.Context, options Options) (map[string]string, error) {
	sources, err := component.FindSources()
	if err != nil {
		return nil, err
	}
	builder := component.Builder{Sources: sources, Cache: options.Cache, Progress: options.Progress}
	return builder.Build(ctx, component.All())
}

func unchanged(c cluster.Cluster, programs map[string]string, fsync bool) bool {
	return maps.Equal(c.Programs, programs) && c.Fsync == fsync
}

// recovers reports whether the cluster is healthy, or becomes healthy because its
// supervisor restarts what has ended.
func recovers(ctx context.Context, c cluster.Cluster, progress io.Writer) bool {
	reason := Healthy(ctx, c)
	if reason == nil {
		fmt.Fprintf(progress, "cluster %s is already running\n", c.Name)
		return true
	}
	record, err := supervise.ReadRecord(c, supervise.Supervisor)
	if err != nil || !record.Alive() || !network.Whole(c) {
		return false
	}
	fmt.Fprintf(progress, "cluster %s: %v; waiting for its supervisor to repair it\n", c.Name, reason)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := settle(ctx, c, progress); err != nil {
		fmt.Fprintf(progress, "it does not recover by itself: %v\n", err)
		return false
	}
	return await(ctx, func(ctx context.Context) error { return Healthy(ctx, c) }) == nil
}

// start goes through every step; each does only what is not done yet.
func start(ctx context.Context, c cluster.Cluster, progress io.Writer) error {
	if c.Slot >= 0 {
		fmt.Fprintf(progress, "cluster %s exists; starting what does not run\n", c.Name)
		if err := prepareRestart(c); err != nil {
			return err
		}
	}
	c, err := claimNetwork(ctx, c, progress)
	if err != nil {
		return err
	}
	if err := pki.Ensure(c, time.Now()); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	values := render.Values{Cluster: c, CNIPlugins: CNIPlugins, Nameservers: render.MachineNameservers()}
	if err := render.Files(values); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := makeCgroups(c); err != nil {
		return err
	}
	if err := startSupervisor(c); err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	if err := settle(ctx, c, progress); err != nil {
		return err
	}
	printUse(progress, c)
	return nil
}

// prepareRestart ends the supervisor and the cluster's programs, but leaves the
// pods running: the new containerd finds them again.
func prepareRestart(c cluster.Cluster) error {
	boot, err := process.BootID()
	if err != nil {
		return err
	}
	if !network.Pinned(c) {
		// Without its namespaces the old cluster cannot be reached, and its pods
		// cannot either.
		if err := killAll(c); err != nil {
			return err
		}
	}
	if err := stopPrograms(c); err != nil {
		return err
	}
	if c.Boot != boot || !network.Pinned(c) {
		// The folder holds the cluster's /run, which has to be empty after a boot.
		return os.RemoveAll(c.Path("system", "run"))
	}
	return nil
}

// claimNetwork chooses a free slot for a new cluster. A slot counts as taken once
// its route exists, so one lock covers choosing the slot and making the route.
func claimNetwork(ctx context.Context, c cluster.Cluster, progress io.Writer) (cluster.Cluster, error) {
	unlock, err := cluster.Lock(ctx, networkLock, progress)
	if err != nil {
		return c, err
	}
	defer unlock()
	if c.Slot < 0 {
		used, err := network.InUse()
		if err != nil {
			return c, err
		}
		used = append(used, cluster.Networks(c.Root)...)
		if c.Slot, err = cluster.ChooseSlot(c.Name, used); err != nil {
			return c, err
		}
	}
	if c.Boot, err = process.BootID(); err != nil {
		return c, err
	}
	// The record is saved first: down needs it to find what the next lines make.
	if err := c.Save(); err != nil {
		return c, err
	}
	if err := network.Ensure(c); err != nil {
		return c, fmt.Errorf("network: %w", err)
	}
	return c, nil
}

// startSupervisor starts the daemon from a copy of this program: the original
// may be a temporary file of `go run`.
func startSupervisor(c cluster.Cluster) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if err := cluster.WriteFile(c.Program(), content, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Path("logs"), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(c.Path("logs", "supervisor.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := process.InheritNothing(); err != nil {
		return err
	}
	command := exec.Command(c.Program(), "supervise", "--name="+c.Name, "--state-dir="+c.Root)
	command.Stdout, command.Stderr = log, log
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return err
	}
	return command.Process.Release()
}

// Supervise is the daemon's work.
func Supervise(ctx context.Context, root, name string) error {
	c, err := cluster.Load(root, name)
	if err != nil {
		return err
	}
	return supervise.Run(ctx, c, os.Stderr)
}

// Balance is the work of the program that gives addresses to Services.
func Balance(ctx context.Context, root, name string) error {
	c, err := cluster.Load(root, name)
	if err != nil {
		return err
	}
	client, err := api.NewFor(c, "load-balancer")
	if err != nil {
		return err
	}
	return loadbalancer.Run(ctx, client, c.LoadBalancerNetwork(), os.Stderr)
}
