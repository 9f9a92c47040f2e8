package sockets

import "golang.org/x/sys/unix"

// boundUnsent sets TCP_NOTSENT_LOWAT, which connections do not have from their listener.
func boundUnsent(fd uintptr) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, MaxUnsent)
}
