//go:build unix

package sockets

import (
	"net"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reset waits until a connection is reset. It reads nothing.
type Reset struct {
	control syscall.RawConn
	check   func(fd uintptr) bool
	files   [1]unix.PollFd
}

// NewReset returns a Reset of a connection, or nil where that is not known: for what is no socket, and on other systems. While reads is
// set, Wait also returns when something arrives. It looks at reads when it begins and when something happens to the connection.
func NewReset(conn net.Conn, reads *atomic.Bool) *Reset {
	system, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	control, err := system.SyscallConn()
	if err != nil {
		return nil
	}
	r := &Reset{control: control}
	r.check = func(fd uintptr) bool {
		r.files[0] = unix.PollFd{Fd: int32(fd)} // errors are always told
		if reads.Load() {
			r.files[0].Events = unix.POLLIN
		}
		_, err := unix.Poll(r.files[:], 0)
		return err == nil && r.files[0].Revents != 0
	}
	return r
}

// Wait returns syscall.ECONNRESET when the connection is reset, or the error of a Read whose deadline is over or whose connection is
// closed, or nil when something has arrived. No Read may run meanwhile.
func (r *Reset) Wait() error {
	if err := r.control.Read(r.check); err != nil {
		return err
	}
	if r.files[0].Revents&(unix.POLLERR|unix.POLLHUP) == 0 {
		return nil
	}
	return syscall.ECONNRESET
}

// IsReset reports whether a connection is known to be reset. It reads nothing, and does not wait.
func IsReset(conn net.Conn) (reset bool) {
	system, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	control, err := system.SyscallConn()
	if err != nil {
		return false
	}
	_ = control.Control(func(fd uintptr) {
		files := [1]unix.PollFd{{Fd: int32(fd)}} // errors are always told
		_, err := unix.Poll(files[:], 0)
		reset = err == nil && files[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return reset
}
