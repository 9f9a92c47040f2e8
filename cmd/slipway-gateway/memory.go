package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// limitPercent is the share of the container's memory from which on Go collects as often as it must. The rest is for
	// what Go does not count.
	limitPercent = 90
	// limitFile is where a container finds its limit (cgroup v2).
	limitFile = "/sys/fs/cgroup/memory.max"
)

// limitMemory keeps the garbage collector below the container's limit, unless GOMEMLIMIT says something else: a gateway
// that is killed for its memory cuts every stream.
func limitMemory() error {
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	text, err := os.ReadFile(limitFile)
	if os.IsNotExist(err) {
		return nil // not in a container, or not one of cgroup v2
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

// memoryLimit is how much of a container's memory Go may take, in bytes; 0 if the container has no limit.
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
