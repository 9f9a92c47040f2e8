package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/hack/image/archive"
	"github.com/slipway-dev/slipway/hack/localkube/api"
	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/network"
	"github.com/slipway-dev/slipway/hack/localkube/render"
	"github.com/slipway-dev/slipway/hack/localkube/supervise"
)

// patience is how long one step of starting may take on a busy machine.
const patience = 3 * time.Minute

// step is something that becomes true a while after the programs have started.
type step struct {
	name string
	// log is the program whose log explains a failure.
	log  string
	done func(context.Context) error
}

// settle waits until the cluster can be used.
func settle(ctx context.Context, c cluster.Cluster, progress io.Writer) error {
	client, err := api.New(c)
	if err != nil {
		return err
	}
	steps := []step{
		{name: "container runtime", log: "containerd", done: func(ctx context.Context) error { return importPause(ctx, c) }},
		{name: "API server", log: "kube-apiserver", done: client.Ready},
		{
			name: "roles, DNS service and StorageClass", log: "kube-apiserver",
			done: func(ctx context.Context) error { return applyManifests(ctx, c) },
		},
		{name: "node", log: "kubelet", done: func(ctx context.Context) error { return nodeReports(ctx, client, c) }},
		{name: "default StorageClass", log: "provisioner", done: client.DefaultStorageClass},
		{name: "DNS", log: "coredns", done: func(ctx context.Context) error { return resolves(ctx, c) }},
	}
	for _, step := range steps {
		started := time.Now()
		if err := await(ctx, step.done); err != nil {
			return fmt.Errorf("%s: %w\n%s", step.name, err, lastLog(c, step.log))
		}
		fmt.Fprintf(progress, "  %-38s ready after %s\n", step.name, time.Since(started).Round(100*time.Millisecond))
	}
	return nil
}

// nodeReports reports whether the kubelet that runs now says the node is ready.
func nodeReports(ctx context.Context, client *api.Client, c cluster.Cluster) error {
	record, err := supervise.ReadRecord(c, "kubelet")
	if err != nil || !record.Alive() {
		return errors.New("the kubelet does not run yet")
	}
	if err := client.NodeRenewedSince(ctx, c.Name, record.Since); err != nil {
		return err
	}
	return client.NodeReady(ctx, c.Name)
}

// await repeats a check until it succeeds or its time is up.
func await(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Healthy returns the reason why the cluster cannot be used, or nil.
func Healthy(ctx context.Context, c cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, name := range slices.Concat([]string{supervise.Supervisor}, supervise.Names) {
		record, err := supervise.ReadRecord(c, name)
		if err != nil || !record.Alive() {
			return fmt.Errorf("%s does not run", name)
		}
	}
	if !network.Whole(c) {
		return fmt.Errorf("the network of cluster %s is not complete", c.Name)
	}
	client, err := api.New(c)
	if err != nil {
		return err
	}
	if err := client.NodeReady(ctx, c.Name); err != nil {
		return err
	}
	if err := client.DefaultStorageClass(ctx); err != nil {
		return err
	}
	return resolves(ctx, c)
}

// resolves asks the cluster's DNS for a name of the cluster, from outside.
func resolves(ctx context.Context, c cluster.Cluster) error {
	// After a lost packet it is faster to ask again than to wait longer.
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	resolver := net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(c.DNSAddress().String(), "53"))
		},
	}
	addresses, err := resolver.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
	if err != nil {
		return err
	}
	if !slices.Contains(addresses, c.APIServiceAddress().String()) {
		return fmt.Errorf("kubernetes.default resolves to %v instead of %s", addresses, c.APIServiceAddress())
	}
	return nil
}

// importPause makes the pause image and gives it to containerd, which also
// shows that containerd works.
func importPause(ctx context.Context, c cluster.Cluster) error {
	binary, err := os.ReadFile(filepath.Join(c.Programs["pause"], "pause"))
	if err != nil {
		return err
	}
	image, err := archive.Image(archive.Program{Name: "pause", Binary: binary, User: archive.DefaultUser})
	if err != nil {
		return err
	}
	file := c.Path("run", "pause.tar")
	if err := archive.Write(image, render.PauseImage, file); err != nil {
		return err
	}
	defer os.Remove(file)
	return importArchive(ctx, c, file)
}

func importArchive(ctx context.Context, c cluster.Cluster, file string) error {
	return output(exec.CommandContext(ctx, filepath.Join(c.Programs["containerd"], "ctr"),
		"--address", render.Socket(c), "--namespace", "k8s.io", "images", "import", "--local", file))
}

func applyManifests(ctx context.Context, c cluster.Cluster) error {
	command := exec.CommandContext(ctx, filepath.Join(c.Programs["kubernetes"], "kubectl"),
		"--kubeconfig", c.Path("config", "bootstrap.kubeconfig"), "--cache-dir", c.Path("run", "kubectl"),
		"apply", "--server-side", "--force-conflicts", "--validate=false", "-f", c.Path("config", "manifests.yaml"))
	return output(command)
}

// output runs a command whose output matters only when it fails.
func output(command *exec.Cmd) error {
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(command.Path), err, bytes.TrimSpace(text))
	}
	return nil
}

// lastLog quotes the end of a program's log.
func lastLog(c cluster.Cluster, program string) string {
	path := c.Path("logs", program+".log")
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	lines = lines[max(0, len(lines)-15):]
	return fmt.Sprintf("The end of %s:\n%s", path, bytes.Join(lines, []byte("\n")))
}
