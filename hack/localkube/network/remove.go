package network

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/process"
)

const forwarding = "/proc/sys/net/ipv4/ip_forward"

// Remove takes the cable and the namespaces away, and with the namespaces all
// that was made in them. The cluster's processes must have ended.
func Remove(c cluster.Cluster) error {
	if _, err := run("nft", "list", "table", "ip", c.Table()); err == nil {
		if _, err := run("nft", "delete", "table", "ip", c.Table()); err != nil {
			return err
		}
	}
	if _, err := run("ip", "link", "show", "dev", c.HostInterface()); err == nil {
		if _, err := run("ip", "link", "delete", "dev", c.HostInterface()); err != nil {
			return err
		}
	}
	if err := unpin(c); err != nil {
		return err
	}
	if othersRemain() {
		return nil
	}
	removeEmptyFolders()
	return restoreForwarding(c.Root)
}

// unpin unmounts everything at and below the cluster's folder, the latest mount
// first: the namespaces, and whatever the machine itself sees of it.
func unpin(c cluster.Cluster) error {
	for {
		content, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return err
		}
		mounts := mountsBelow(content, c.Folder())
		if len(mounts) == 0 {
			return nil
		}
		last := mounts[len(mounts)-1]
		if err := syscall.Unmount(last, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", last, err)
		}
	}
}

// mountsBelow lists the mount points at or below folder in the order in which
// they were mounted.
func mountsBelow(mountinfo []byte, folder string) []string {
	var mounts []string
	for line := range bytes.Lines(mountinfo) {
		// strings.Fields would split a name at white space that the kernel does not escape.
		fields := strings.Split(string(line), " ")
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		if point == folder || strings.HasPrefix(point, folder+"/") {
			mounts = append(mounts, point)
		}
	}
	return mounts
}

// unescape reads the kernel's notation of spaces and the like: \040.
func unescape(text string) string {
	var result strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				result.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		result.WriteByte(text[i])
	}
	return result.String()
}

// Pinned reports whether the cluster's namespaces exist.
func Pinned(c cluster.Cluster) bool {
	return process.IsNamespace(c.NetworkNamespace()) && process.IsNamespace(c.MountNamespace())
}

// othersRemain reports whether another cluster still runs on this machine,
// wherever it keeps its state.
func othersRemain() bool {
	tables, err := run("nft", "list", "tables", "ip")
	return err != nil || strings.Contains(tables, "table ip slipway")
}

// removeEmptyFolders removes the shared folders that are empty. It must not run
// while another cluster has something mounted there: removing a folder takes
// away the mounts that others have on it.
func removeEmptyFolders() {
	for _, folder := range sharedFolders {
		_ = os.Remove(folder)
	}
}

// enableForwarding lets the machine forward packets, and notes what was set
// before, for the last cluster to restore.
func enableForwarding(root string) error {
	before, err := os.ReadFile(forwarding)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(before)) == "1" {
		return nil
	}
	if err := cluster.WriteFile(forwardingNote(root), before, 0o644); err != nil {
		return err
	}
	return os.WriteFile(forwarding, []byte("1\n"), 0o644)
}

func restoreForwarding(root string) error {
	before, err := os.ReadFile(forwardingNote(root))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(forwarding, before, 0o644), os.Remove(forwardingNote(root)))
}

func forwardingNote(root string) string { return filepath.Join(root, "ip_forward.before") }
