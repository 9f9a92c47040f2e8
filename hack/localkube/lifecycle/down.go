package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/network"
	"github.com/slipway-dev/slipway/hack/localkube/process"
	"github.com/slipway-dev/slipway/hack/localkube/supervise"
)

// Down ends everything that belongs to the cluster and removes every trace of
// it but the cache. With leftover it refuses a cluster of which a program still
// runs.
func Down(ctx context.Context, root, name string, leftover bool, progress io.Writer) error {
	if err := CheckHost(); err != nil {
		return err
	}
	unlock, err := cluster.Lock(ctx, lockName(root, name), progress)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := cluster.Load(root, name)
	if errors.Is(err, cluster.ErrNone) {
		fmt.Fprintf(progress, "cluster %s does not run\n", name)
		return nil
	}
	if err != nil {
		return err
	}
	if program := running(c); leftover && program != "" {
		return fmt.Errorf("cluster %s is in use: its %s runs", name, program)
	}
	started := time.Now()
	// The supervisor ends first: otherwise it would restart the programs that end.
	if record, err := supervise.ReadRecord(c, supervise.Supervisor); err == nil {
		if err := kill([]process.Identity{record.Identity}); err != nil {
			return err
		}
	}
	if err := killAll(c); err != nil {
		return err
	}
	if err := removeCgroups(c); err != nil {
		return err
	}
	if err := releaseNetwork(ctx, c, progress); err != nil {
		return err
	}
	if err := os.RemoveAll(c.Folder()); err != nil {
		return err
	}
	// These are empty unless another cluster, or somebody else, uses them.
	_ = os.Remove(root)
	_ = os.Remove(filepath.Dir(root))
	fmt.Fprintf(progress, "cluster %s is gone after %s\n", name, time.Since(started).Round(100*time.Millisecond))
	return nil
}

// running names a program of the cluster that is alive, if any is.
func running(c cluster.Cluster) string {
	for _, name := range slices.Concat([]string{supervise.Supervisor}, supervise.Names) {
		if record, err := supervise.ReadRecord(c, name); err == nil && record.Alive() {
			return name
		}
	}
	return ""
}

// releaseNetwork removes the cluster's network. The last cluster also removes what
// all clusters of the machine share. The lock keeps another cluster from claiming its
// network meanwhile.
func releaseNetwork(ctx context.Context, c cluster.Cluster, progress io.Writer) error {
	unlock, err := cluster.Lock(ctx, networkLock, progress)
	if err != nil {
		return err
	}
	defer unlock()
	return network.Remove(c)
}

// stopPrograms ends the supervisor, and then the cluster's programs that the
// supervisor has left running.
func stopPrograms(c cluster.Cluster) error {
	if record, err := supervise.ReadRecord(c, supervise.Supervisor); err == nil {
		if err := record.Stop(30 * time.Second); err != nil {
			return fmt.Errorf("supervisor: %w", err)
		}
	}
	return killUntilNone(func() ([]process.Identity, error) {
		found, err := nodeProcesses(c)
		if err != nil {
			return nil, err
		}
		return slices.DeleteFunc(found, func(identity process.Identity) bool {
			return !slices.Contains(supervise.Executables, identity.Program())
		}), nil
	})
}

// killAll ends every process of the cluster, its pods included.
func killAll(c cluster.Cluster) error {
	return killUntilNone(func() ([]process.Identity, error) {
		found, err := nodeProcesses(c)
		if err != nil {
			return nil, err
		}
		groups, err := cgroups(c)
		if err != nil {
			return nil, err
		}
		pods, err := process.InCgroups(groups)
		if err != nil {
			return nil, err
		}
		return slices.Concat(found, pods), nil
	})
}

// nodeProcesses lists the cluster's processes outside of pods: the recorded
// ones, the marked ones, and whatever else is in the node's network. The three
// overlap; each finds what the others miss after a crash.
func nodeProcesses(c cluster.Cluster) ([]process.Identity, error) {
	marked, err := process.Marked(c.Marker())
	if err != nil {
		return nil, err
	}
	inside, err := process.InNetwork(c.NetworkNamespace())
	if err != nil {
		return nil, err
	}
	return slices.Concat(recorded(c), marked, inside), nil
}

// recorded lists the processes that have a record and still run.
func recorded(c cluster.Cluster) []process.Identity {
	var found []process.Identity
	for _, name := range slices.Concat([]string{supervise.Supervisor}, supervise.Names) {
		record, err := supervise.ReadRecord(c, name)
		if err == nil && record.Alive() {
			found = append(found, record.Identity)
		}
	}
	return found
}

// killUntilNone kills what it finds until it finds nothing more: a process may
// have started another one just before it ended.
func killUntilNone(find func() ([]process.Identity, error)) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		found, err := find()
		if err != nil || len(found) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end", found)
		}
		if err := kill(found); err != nil {
			return err
		}
	}
}

func kill(processes []process.Identity) error {
	for _, identity := range processes {
		if err := identity.Signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	for _, identity := range processes {
		if !identity.WaitGone(10 * time.Second) {
			return fmt.Errorf("process %d does not end", identity.PID)
		}
	}
	return nil
}
