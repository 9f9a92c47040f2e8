// Package network gives a cluster a network namespace and a mount namespace of its
// own. One virtual cable (a veth pair) joins them to the machine. What the
// cluster's programs make inside (bridges, routes, nftables tables, mounts) does
// not disturb the machine, and goes away with the namespaces.
package network

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
)

// sharedFolders are the folders whose paths the cluster's programs do not let one
// choose. Each cluster sees its own folders at these paths.
var sharedFolders = []string{
	"/run/containerd", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods",
}

// Ensure makes the namespaces and the cable, or what is missing of them.
func Ensure(c cluster.Cluster) error {
	if err := ensureNamespaces(c); err != nil {
		return err
	}
	if err := ensureCable(c); err != nil {
		return err
	}
	return ensureOutside(c)
}

// Enter wraps a command so that it runs inside of the cluster's namespaces. The
// wrapper replaces itself by the command, so the process keeps its number.
func Enter(c cluster.Cluster, command ...string) []string {
	enter := []string{"nsenter", "--mount=" + c.MountNamespace(), "--net=" + c.NetworkNamespace(), "--"}
	return append(enter, command...)
}

// Whole reports whether the namespaces and the cable are in place.
func Whole(c cluster.Cluster) bool {
	if !Pinned(c) {
		return false
	}
	addresses, err := run("ip", "-4", "-o", "address", "show", "dev", c.HostInterface(), "up")
	if err != nil || !strings.Contains(addresses, c.HostAddress().String()+"/") {
		return false
	}
	routes, err := run("ip", "-4", "route", "show", c.Network().String())
	if err != nil || !strings.Contains(routes, c.NodeAddress().String()) {
		return false
	}
	_, err = run("nft", "list", "table", "ip", c.Table())
	return err == nil
}

func ensureNamespaces(c cluster.Cluster) error {
	if Pinned(c) {
		return nil
	}
	if err := unpin(c); err != nil {
		return err
	}
	// A new mount namespace, such as another cluster's, begins with a copy of all
	// mounts. When a shared mount is unmounted here, it goes from the copies as
	// well. A mount that is not shared would stay there and keep this network alive.
	if err := bind(filepath.Dir(c.NetworkNamespace()), syscall.MS_SHARED); err != nil {
		return err
	}
	// The file of a mount namespace can only lie below a mount that is not shared.
	// The kernel leaves this file out of the copies.
	if err := bind(filepath.Dir(c.MountNamespace()), syscall.MS_PRIVATE); err != nil {
		return err
	}
	for _, file := range []string{c.NetworkNamespace(), c.MountNamespace()} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			return err
		}
	}
	_, err := run("unshare", "--mount="+c.MountNamespace(), "--net="+c.NetworkNamespace(), "--propagation", "slave", "true")
	if err != nil {
		return err
	}
	return bindFolders(c)
}

// bind makes a folder a mount of its own with the given propagation.
func bind(folder string, propagation uintptr) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(folder, folder, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", folder, err)
	}
	if err := syscall.Mount("", folder, "", propagation, ""); err != nil {
		return fmt.Errorf("propagation of %s: %w", folder, err)
	}
	return nil
}

// bindFolders mounts folders of the cluster over the shared ones. Only processes
// inside of the namespace see them.
func bindFolders(c cluster.Cluster) error {
	// The cluster's folder becomes a shared mount: what the kubelet mounts below it
	// for volumes must appear in the containers.
	script := "mount --bind $1 $1 && mount --make-rshared $1"
	if _, err := run(Enter(c, "sh", "-c", script, "sh", c.Folder())...); err != nil {
		return err
	}
	for _, folder := range sharedFolders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		own := c.Path("system", folder)
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
		if _, err := run(Enter(c, "sh", "-c", "mount --bind $1 $2 && mount --make-rshared $2", "sh", own, folder)...); err != nil {
			return err
		}
	}
	return nil
}

// ensureCable joins the machine and the cluster: one end each, and a route.
func ensureCable(c cluster.Cluster) error {
	inside := func(arguments ...string) []string {
		return append([]string{"nsenter", "--net=" + c.NetworkNamespace(), "--"}, arguments...)
	}
	if _, err := run("ip", "link", "show", "dev", c.HostInterface()); err != nil {
		_, err := run("ip", "link", "add", c.HostInterface(), "type", "veth", "peer", "name", "eth0", "netns", c.NetworkNamespace())
		if err != nil {
			return err
		}
	}
	steps := [][]string{
		{"ip", "address", "replace", c.HostAddress().String() + "/30", "dev", c.HostInterface()},
		{"ip", "link", "set", "dev", c.HostInterface(), "up"},
		inside("ip", "link", "set", "dev", "lo", "up"),
		inside("ip", "address", "replace", c.NodeAddress().String()+"/30", "dev", "eth0"),
		inside("ip", "link", "set", "dev", "eth0", "up"),
		inside("ip", "route", "replace", "default", "via", c.HostAddress().String()),
		inside("sh", "-c", "echo 1 > "+forwarding),
		{"ip", "route", "replace", c.Network().String(), "via", c.NodeAddress().String(), "dev", c.HostInterface()},
	}
	for _, step := range steps {
		if _, err := run(step...); err != nil {
			return err
		}
	}
	return nil
}

// ensureOutside lets the cluster reach what the machine reaches, under the
// machine's address.
func ensureOutside(c cluster.Cluster) error {
	if err := enableForwarding(c.Root); err != nil {
		return err
	}
	rules := fmt.Sprintf(`table ip %[1]s
delete table ip %[1]s
table ip %[1]s {
	chain outside {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr %[2]s oifname != %[3]q masquerade
	}
}
`, c.Table(), c.Network(), c.HostInterface())
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// InUse lists the networks that the machine has routes to, without the default
// route.
func InUse() ([]netip.Prefix, error) {
	output, err := run("ip", "-4", "-json", "route", "show", "table", "all")
	if err != nil {
		return nil, err
	}
	return parseRoutes([]byte(output))
}

func parseRoutes(output []byte) ([]netip.Prefix, error) {
	var routes []struct {
		Destination string `json:"dst"`
	}
	if err := json.Unmarshal(output, &routes); err != nil {
		return nil, fmt.Errorf("ip route: %w", err)
	}
	var networks []netip.Prefix
	for _, route := range routes {
		if prefix, err := netip.ParsePrefix(route.Destination); err == nil {
			networks = append(networks, prefix)
			continue
		}
		if address, err := netip.ParseAddr(route.Destination); err == nil {
			networks = append(networks, netip.PrefixFrom(address, address.BitLen()))
		}
	}
	return networks, nil
}

func run(command ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	process := exec.Command(command[0], command[1:]...)
	process.Stdout, process.Stderr = &stdout, &stderr
	if err := process.Run(); err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", strings.Join(command, " "), err), errors.New(strings.TrimSpace(stderr.String())))
	}
	return stdout.String(), nil
}
