package lifecycle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
)

// cgroups lists the folder of the cluster's pods in every control group
// hierarchy of the machine.
func cgroups(c cluster.Cluster) ([]string, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, point := range hierarchies(mountinfo) {
		folders = append(folders, filepath.Join(point, c.Cgroup()))
	}
	return folders, nil
}

// hierarchies lists the mount points of the control group file systems, of
// version 1 and of version 2.
func hierarchies(mountinfo []byte) []string {
	var points []string
	for line := range bytes.Lines(mountinfo) {
		mount, rest, found := strings.Cut(string(line), " - ")
		fields, kind := strings.Split(mount, " "), strings.Split(rest, " ")
		if !found || len(fields) < 5 {
			continue
		}
		if (kind[0] == "cgroup" || kind[0] == "cgroup2") && !slices.Contains(points, fields[4]) {
			points = append(points, fields[4])
		}
	}
	return points
}

// makeCgroups makes the folders, because the kubelet expects that they exist.
func makeCgroups(c cluster.Cluster) error {
	folders, err := cgroups(c)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := os.Mkdir(folder, 0o755); err != nil && !os.IsExist(err) {
			return fmt.Errorf("control group: %w", err)
		}
	}
	return nil
}

func removeCgroups(c cluster.Cluster) error {
	folders, err := cgroups(c)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := removeCgroup(folder); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroup removes a group and those below it, the deepest first. The
// kernel keeps a group busy for a moment after its last process has ended.
func removeCgroup(folder string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := removeTree(folder)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("control group: %w", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func removeTree(folder string) error {
	var folders []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(folders) {
		if err := syscall.Rmdir(path); err != nil && !os.IsNotExist(err) {
			return &os.PathError{Op: "rmdir", Path: path, Err: err}
		}
	}
	return nil
}
