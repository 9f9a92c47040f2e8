package memory

import "runtime/debug"

// goPercent is the share of the container's memory that the Go runtime may use.
// Above it, the garbage collector runs as often as needed. The rest is for memory that
// Go does not count.
const goPercent = 90

// KeepBelowLimit sets Go's memory limit below the container's limit, unless GOMEMLIMIT is lower.
// A gateway that is killed because of its memory cuts every stream, a backup loses its attempt.
func KeepBelowLimit() error {
	limit, err := Limit()
	if err != nil || limit == 0 {
		return err
	}
	stated := debug.SetMemoryLimit(-1) // only asks
	debug.SetMemoryLimit(min(stated, GoLimit(limit)))
	return nil
}

// GoLimit returns how much Go may use of the memory of a container with this limit. Both are in bytes.
func GoLimit(limit int64) int64 { return limit / 100 * goPercent }
