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
	secure  *tls.Conn // nil without TLS
	control syscall.RawConn
	check   func(fd uintptr)
	quiet   *bool
}

func newLiveness(raw net.Conn) liveness {
	secure, _ := raw.(*tls.Conn)
	raw = below(raw)
	system, ok := raw.(syscall.Conn)
	if !ok {
		return liveness{secure: secure}
	}
	control, err := system.SyscallConn()
	if err != nil {
		return liveness{secure: secure}
	}
	quiet := new(bool)
	files := make([]unix.PollFd, 1)
	check := func(fd uintptr) {
		files[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		ready, err := unix.Poll(files, 0)
		*quiet = err == nil && ready == 0
	}
	return liveness{secure: secure, control: control, check: check, quiet: quiet}
}

// unchanged reports whether nothing arrived on the connection: neither its end nor bytes,
// which would be read as the next response.
func (l *liveness) unchanged() bool {
	if l.secure != nil && !quiet(l.secure) {
		return false
	}
	if l.control == nil {
		return true
	}
	if err := l.control.Control(l.check); err != nil {
		return false
	}
	return *l.quiet
}
