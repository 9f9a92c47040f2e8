package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// ErrLocked means that another process holds the lock.
var ErrLocked = errors.New("another process is at work")

// TryLock takes the machine-wide lock of that name, or returns ErrLocked. The
// lock is an abstract socket: it leaves no file behind, and the kernel releases
// it when the process ends, however it ends.
func TryLock(name string) (func(), error) {
	listener, err := net.Listen("unix", fmt.Sprintf("@slipway-localkube-%x", sha256.Sum256([]byte(name))))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = listener.Close() }, nil
}

// Lock waits until no other process holds the lock, and takes it.
func Lock(ctx context.Context, name string, progress io.Writer) (func(), error) {
	said := false
	for {
		unlock, err := TryLock(name)
		if !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		if !said {
			fmt.Fprintln(progress, "another localkube is working on this; waiting for it")
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
