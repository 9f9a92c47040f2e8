// Package memory reads how much memory the container of a program may use, and keeps Go below it.
package memory

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// limitFile is the file in which a container reads its memory limit (cgroup v2).
const limitFile = "/sys/fs/cgroup/memory.max"

// Limit returns the memory limit of the container, in bytes. It is 0 where there is no limit,
// no container or no cgroup v2.
func Limit() (int64, error) {
	text, err := os.ReadFile(limitFile)
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return parse(string(text))
}

func parse(text string) (int64, error) {
	text = strings.TrimSpace(text)
	if text == "max" {
		return 0, nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return 0, fmt.Errorf("%s: %q is not a number of bytes", limitFile, text)
	}
	return limit, nil
}
