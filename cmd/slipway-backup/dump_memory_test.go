//go:build backuptest

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// A dump may be larger than any memory. It is random, so that nothing of it is stored once for several parts.
func TestALargeDumpTakesLittleMemory(t *testing.T) {
	const size, limit = 2 << 30, 300 << 20
	d := newDumping(t)
	runs := d.runs(fmt.Sprintf("head -c %d /dev/urandom", size))
	keeps := d.keeps()
	peak := make(chan int64)
	done := make(chan struct{})
	go func() { peak <- peakMemory(keeps.Process.Pid, done) }()
	o := d.end(keeps)
	close(done)
	most := <-peak
	if o.code != 0 || o.result.Snapshot.Stats.Bytes != size {
		t.Fatalf("exit code %d: %s\n%s", o.code, o.raw, o.output)
	}
	d.stop(runs)
	t.Logf("measured: %d MiB of memory at most for a dump of %d MiB, %d MiB stored", most>>20, size>>20, o.result.Snapshot.AddedBytes>>20)
	if most > limit || most == 0 {
		t.Errorf("it took %d bytes of memory, want at most %d", most, limit)
	}
}

// peakMemory is the most memory that a process has had, as it was seen last. What getrusage tells includes what the process
// was before it became slipway-backup.
func peakMemory(pid int, done <-chan struct{}) (most int64) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return most
		case <-ticker.C:
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		for line := range bytes.Lines(status) {
			if fields := bytes.Fields(line); len(fields) == 3 && string(fields[0]) == "VmHWM:" {
				if kibibytes, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
					most = max(most, kibibytes<<10)
				}
			}
		}
	}
}
