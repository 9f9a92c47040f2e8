//go:build unix

package proxy

import (
	"errors"
	"net"
	"syscall"
)

// receive waits for a datagram. The buffer is taken when there is one, so that a thousand sessions that wait have none.
func receive(conn *net.UDPConn) (buffer *[maxDatagram]byte, n int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, 0, err
	}
	var failure error
	err = raw.Read(func(fd uintptr) bool {
		buffer, _ = datagramBuffers.Get().(*[maxDatagram]byte)
		for {
			n, failure = syscall.Read(int(fd), buffer[:])
			if !errors.Is(failure, syscall.EINTR) {
				break
			}
		}
		if errors.Is(failure, syscall.EAGAIN) {
			datagramBuffers.Put(buffer)
			buffer = nil
			return false
		}
		return true
	})
	if err == nil {
		err = failure
	}
	return buffer, n, err
}
