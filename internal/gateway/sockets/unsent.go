// Package sockets bounds what the kernel keeps of connections.
//
//	reset_other.go    Reset where it is not known how to wait for a reset
//	reset_unix.go     Reset: waiting until a connection is reset
//	silence.go        asking a peer that sends nothing whether it is there
//	silence_linux.go  whether the kernel of a peer has stopped answering
//	silence_other.go  the same for other systems: unknown
//	unsent.go         bounding what waits in the kernel to be sent
//	unsent_linux.go   the socket option for that
//	unsent_other.go   the same for other systems: nothing
package sockets

import (
	"net"
	"syscall"
)

// MaxUnsent is how many bytes may wait in the kernel until a connection can send them. What was sent and is not acknowledged
// yet does not count, so the bound makes nobody slower: it bounds what waits for a peer that takes nothing. Without it the
// kernel keeps up to 4 MiB for each of them (net.ipv4.tcp_wmem).
const MaxUnsent = 64 << 10

// Listen returns a listener that bounds what waits to be sent on each of its connections.
func Listen(listener net.Listener) net.Listener { return bounded{listener} }

type bounded struct{ net.Listener }

// Accept waits for the next connection.
func (b bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err == nil {
		BoundUnsent(conn)
	}
	return conn, err
}

// BoundUnsent bounds what waits to be sent on a connection. What is no socket, such as a pipe, is left alone, and so is a
// system that has no such bound.
func BoundUnsent(conn net.Conn) {
	system, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	control, err := system.SyscallConn()
	if err != nil {
		return
	}
	_ = control.Control(boundUnsent)
}
