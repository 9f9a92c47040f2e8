package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/render"
	"github.com/slipway-dev/slipway/hack/localkube/supervise"
)

// Status prints what runs, and returns an error when the cluster cannot be used.
func Status(ctx context.Context, root, name string, output io.Writer) error {
	c, err := cluster.Load(root, name)
	if errors.Is(err, cluster.ErrNone) {
		return fmt.Errorf("cluster %s does not run", name)
	}
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROGRAM\tSTATE\tPID\tRESTARTS\tSINCE")
	for _, program := range slices.Concat([]string{supervise.Supervisor}, supervise.Names) {
		record, err := supervise.ReadRecord(c, program)
		if err != nil || !record.Alive() {
			fmt.Fprintf(table, "%s\tstopped\t-\t-\t-\n", program)
			continue
		}
		fmt.Fprintf(table, "%s\trunning\t%d\t%d\t%s\n", program, record.PID, record.Restarts, time.Since(record.Since).Round(time.Second))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := Healthy(ctx, c); err != nil {
		return fmt.Errorf("cluster %s is not healthy: %w", name, err)
	}
	fmt.Fprintf(output, "\ncluster %s is healthy\n", name)
	printUse(output, c)
	return nil
}

// Load gives image archives to the node.
func Load(ctx context.Context, root, name string, files []string, progress io.Writer) error {
	if err := CheckHost(); err != nil {
		return err
	}
	c, err := cluster.Load(root, name)
	if err != nil {
		return fmt.Errorf("cluster %s: %w; start it with up", name, err)
	}
	for _, file := range files {
		if err := importArchive(ctx, c, file); err != nil {
			return fmt.Errorf("load %s: %w", file, err)
		}
		fmt.Fprintf(progress, "loaded %s\n", file)
	}
	return nil
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func Kubeconfig(root, name string) (string, error) {
	return pathOf(root, name, cluster.Cluster.Kubeconfig)
}

// Logs returns the path of the folder with a log of each program.
func Logs(root, name string) (string, error) {
	return pathOf(root, name, func(c cluster.Cluster) string { return c.Path("logs") })
}

// pathOf returns a path of a cluster that has been started.
func pathOf(root, name string, of func(cluster.Cluster) string) (string, error) {
	c, err := cluster.Load(root, name)
	if err != nil {
		return "", fmt.Errorf("cluster %s: %w; start it with up", name, err)
	}
	path := of(c)
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	return path, nil
}

func printUse(output io.Writer, c cluster.Cluster) {
	fmt.Fprintf(output, "  export KUBECONFIG=%s\n", c.Kubeconfig())
	fmt.Fprintf(output, "  kubectl is %s\n", filepath.Join(c.Programs["kubernetes"], "kubectl"))
	fmt.Fprintf(output, "  API server %s, DNS %s, pods %s, services %s, load balancers %s\n",
		c.Server(), c.DNSAddress(), c.PodNetwork(), c.ServiceNetwork(), c.LoadBalancerNetwork())
	fmt.Fprintf(output, "  this machine is %s to pods; a registry on it may use ports %d to %d\n", c.HostAddress(),
		render.FirstRegistryPort, render.LastRegistryPort)
}
