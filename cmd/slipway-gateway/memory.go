package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// limitPercent is the share of the container's memory that the Go runtime may use.
	// Above it, the garbage collector runs as often as needed. The rest is for memory that
	// Go does not count.
	limitPercent = 90
	// limitFile is the file in which a container reads its memory limit (cgroup v2).
	limitFile = "/sys/fs/cgroup/memory.max"
)

// limitMemory sets Go's memory limit below the container's limit, unless GOMEMLIMIT is set.
// A gateway that is killed because of its memory cuts every stream.
func limitMemory() error {
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	text, err := os.ReadFile(limitFile)
	if os.IsNotExist(err) {
		return nil // not in a container, or not cgroup v2
	}
	if err != nil {
		return err
	}
	limit, err := memoryLimit(string(text))
	if err != nil || limit == 0 {
		return err
	}
	debug.SetMemoryLimit(limit)
	return nil
}

// memoryLimit returns how much of a container's memory Go may use, in bytes. It is 0 if the
// container has no limit.
func memoryLimit(text string) (int64, error) {
	text = strings.TrimSpace(text)
	if text == "max" {
		return 0, nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return 0, fmt.Errorf("%s: %q is not a number of bytes", limitFile, text)
	}
	return limit / 100 * limitPercent, nil
}
