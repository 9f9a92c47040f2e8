package sockets

import (
	"net"

	"golang.org/x/sys/unix"
)

// IsSilent reports whether the kernel of a peer has not answered for some seconds: neither to what was sent, nor to what AskOften asks.
// A program that takes its time, or reads nothing, is not silent.
func IsSilent(conn net.Conn) (silent bool) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return false
	}
	control, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	_ = control.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		silent = err == nil && max(info.Retransmits, info.Probes) >= maxUnanswered && info.Last_ack_recv >= minSilence
	})
	return silent
}
