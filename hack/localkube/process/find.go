package process

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// IsNamespace reports whether a namespace is pinned at path.
func IsNamespace(path string) bool {
	// The type of the file system that namespaces live in (linux/magic.h).
	const nsfs = 0x6e736673
	var stat syscall.Statfs_t
	return syscall.Statfs(path, &stat) == nil && stat.Type == nsfs
}

// InNetwork lists the processes whose network namespace is pinned at path. It
// is empty when nothing is pinned there.
func InNetwork(path string) ([]Identity, error) {
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, fmt.Errorf("%s: no inode number", path)
	}
	// The caller ends every process that is found. A plain file may have the inode number of
	// a namespace, so it does not count, and neither does our own namespace.
	if !IsNamespace(path) {
		return nil, nil
	}
	want := fmt.Sprintf("net:[%d]", stat.Ino)
	if own, err := os.Readlink("/proc/self/ns/net"); err != nil || own == want {
		return nil, err
	}

	pids, err := all()
	if err != nil {
		return nil, err
	}
	var found []Identity
	for _, pid := range pids {
		// A process that cannot be read any more has ended.
		link, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", "net"))
		if err != nil || link != want {
			continue
		}
		if identity, err := Identify(pid); err == nil {
			found = append(found, identity)
		}
	}
	return found, nil
}

// Marked lists the processes that were started with this setting in their
// environment.
func Marked(setting string) ([]Identity, error) {
	pids, err := all()
	if err != nil {
		return nil, err
	}
	var found []Identity
	for _, pid := range pids {
		environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil || !hasSetting(environment, setting) {
			continue
		}
		if identity, err := Identify(pid); err == nil {
			found = append(found, identity)
		}
	}
	return found, nil
}

func hasSetting(environment []byte, setting string) bool {
	for _, one := range bytes.Split(environment, []byte{0}) {
		if string(one) == setting {
			return true
		}
	}
	return false
}

// InCgroups lists the processes in the control groups at or below the folders.
func InCgroups(folders []string) ([]Identity, error) {
	pids := map[int]bool{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil || entry.Name() != "cgroup.procs" {
				return err
			}
			addMembers(pids, path)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var found []Identity
	for pid := range pids {
		if identity, err := Identify(pid); err == nil {
			found = append(found, identity)
		}
	}
	return found, nil
}

// addMembers adds the processes that a cgroup.procs file lists. A file that cannot be
// read belongs to a group that was removed meanwhile and so is empty.
func addMembers(pids map[int]bool, file string) {
	content, err := os.ReadFile(file)
	if err != nil {
		return
	}
	for _, field := range strings.Fields(string(content)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids[pid] = true
		}
	}
}

// Program is the name of the file that the process runs.
func (i Identity) Program() string {
	path, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(i.PID), "exe"))
	if err != nil {
		return ""
	}
	return filepath.Base(strings.TrimSuffix(path, " (deleted)"))
}

func all() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
