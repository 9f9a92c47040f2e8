//go:build unix

package upstream

import (
	"crypto/tls"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// liveness checks whether an idle connection is still unchanged.
type liveness struct {
	control syscall.RawConn
	check   func(fd uintptr)
	quiet   *bool
}

func newLiveness(raw net.Conn) liveness {
	if secure, ok := raw.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	system, ok := raw.(syscall.Conn)
	if !ok {
		return liveness{}
	}
	control, err := system.SyscallConn()
	if err != nil {
		return liveness{}
	}
	quiet := new(bool)
	files := make([]unix.PollFd, 1)
	check := func(fd uintptr) {
		files[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		ready, err := unix.Poll(files, 0)
		*quiet = err == nil && ready == 0
	}
	return liveness{control: control, check: check, quiet: quiet}
}

// unchanged reports that nothing arrived on the connection: neither its end nor bytes,
// which would be read as the next response.
func (l *liveness) unchanged() bool {
	if l.control == nil {
		return true
	}
	if err := l.control.Control(l.check); err != nil {
		return false
	}
	return *l.quiet
}
