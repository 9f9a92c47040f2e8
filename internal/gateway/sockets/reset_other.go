//go:build !unix

package sockets

import (
	"errors"
	"net"
	"sync/atomic"
)

// Reset waits until a connection is reset.
type Reset struct{}

// NewReset returns nil: it is not known here.
func NewReset(net.Conn, *atomic.Bool) *Reset { return nil }

// IsReset returns false: it is not known here.
func IsReset(net.Conn) bool { return false }

// Wait is not called.
func (*Reset) Wait() error { return errors.ErrUnsupported }
