package memory

import (
	"os"
	"runtime/debug"
)

// goPercent is the share of the container's memory that the Go runtime may use.
// Above it, the garbage collector runs as often as needed. The rest is for memory that
// Go does not count.
const goPercent = 90

// KeepBelowLimit sets Go's memory limit below the container's limit, unless GOMEMLIMIT is set.
// A gateway that is killed because of its memory cuts every stream, a backup loses its attempt.
func KeepBelowLimit() error {
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	limit, err := Limit()
	if err != nil || limit == 0 {
		return err
	}
	debug.SetMemoryLimit(goLimit(limit))
	return nil
}

// goLimit returns how much of a container's memory Go may use.
func goLimit(limit int64) int64 { return limit / 100 * goPercent }
