// Package process identifies a process by its number and its start time. The
// kernel uses numbers again, so a number alone could end another process.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Identity names one process for as long as the machine runs.
type Identity struct {
	PID int `json:"pid"`
	// Started is the start time in clock ticks since the machine booted.
	Started uint64 `json:"started"`
	// Boot is the identity of that boot.
	Boot string `json:"boot"`
}

// Identify returns the identity of the process that has this number now.
func Identify(pid int) (Identity, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return Identity{}, err
	}
	started, zombie, err := parseStat(stat)
	if err != nil {
		return Identity{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if zombie {
		return Identity{}, fmt.Errorf("process %d has ended", pid)
	}
	boot, err := BootID()
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, Started: started, Boot: boot}, nil
}

// InheritNothing keeps the programs that this one starts from inheriting open
// files, beyond the standard ones. A shell may have left a lock open, which would
// then be held for as long as those programs run.
func InheritNothing() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if number, err := strconv.Atoi(entry.Name()); err == nil && number > 2 {
			syscall.CloseOnExec(number)
		}
	}
	return nil
}

// BootID identifies the current boot of the machine.
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// parseStat reads the start time out of /proc/<pid>/stat. The program's name is
// in parentheses and may itself hold spaces and parentheses, so the fields are
// counted from the last one.
func parseStat(stat []byte) (started uint64, zombie bool, err error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, false, errors.New("unknown format of /proc/<pid>/stat")
	}
	fields := strings.Fields(string(stat[end+1:]))
	// The state is field 3 and the start time field 22, counted from one; the first two
	// are cut off.
	const state, start = 0, 19
	if len(fields) <= start {
		return 0, false, errors.New("unknown format of /proc/<pid>/stat")
	}
	started, err = strconv.ParseUint(fields[start], 10, 64)
	return started, fields[state] == "Z" || fields[state] == "X", err
}

// Alive reports whether exactly this process still runs.
func (i Identity) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	now, err := Identify(i.PID)
	return err == nil && now == i
}

// Signal sends a signal to exactly this process. The kernel's process handle is
// opened before the identity is verified, so the number cannot be given to
// another process in between.
func (i Identity) Signal(signal syscall.Signal) error {
	handle, err := unix.PidfdOpen(i.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(handle)
	if !i.Alive() {
		return nil
	}
	err = unix.PidfdSendSignal(handle, signal, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// WaitGone waits until the process has ended and reports whether it did in time.
func (i Identity) WaitGone(limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for i.Alive() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// Stop asks the process to end, and ends it after the grace period.
func (i Identity) Stop(grace time.Duration) error {
	if err := i.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if i.WaitGone(grace) {
		return nil
	}
	if err := i.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !i.WaitGone(10 * time.Second) {
		return fmt.Errorf("process %d does not end", i.PID)
	}
	return nil
}
