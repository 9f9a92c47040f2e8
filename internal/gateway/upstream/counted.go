package upstream

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// countedConn is a connection that is counted until it is closed.
type countedConn struct {
	net.Conn

	uncount func()
	forget  func() // the endpoint does
	once    sync.Once
}

// Close closes the connection.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.uncount()
		c.forget()
	})
	return err
}

// CloseWrite closes the write side.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// SetLinger sets what Close does with unsent bytes.
func (c *countedConn) SetLinger(seconds int) error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.SetLinger(seconds)
	}
	return errors.ErrUnsupported
}

// SetReadBuffer bounds what the kernel keeps until it is read.
func (c *countedConn) SetReadBuffer(bytes int) error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.SetReadBuffer(bytes)
	}
	return errors.ErrUnsupported
}

// SyscallConn lets the pool check whether the connection is unchanged.
func (c *countedConn) SyscallConn() (syscall.RawConn, error) {
	if system, ok := c.Conn.(syscall.Conn); ok {
		return system.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
