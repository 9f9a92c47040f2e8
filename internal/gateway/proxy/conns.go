package proxy

import (
	"context"
	"net"
	"sync"
)

// conns are connections that net/http no longer tracks.
type conns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	empty chan struct{} // closed when the last one is removed; nil while nothing waits
}

func (c *conns) add(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(conn)
}

// addUpTo adds a connection, unless the limit is reached.
func (c *conns) addUpTo(conn net.Conn, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.conns) >= limit {
		return false
	}
	c.addLocked(conn)
	return true
}

func (c *conns) addLocked(conn net.Conn) {
	if c.conns == nil {
		c.conns = map[net.Conn]struct{}{}
	}
	c.conns[conn] = struct{}{}
}

func (c *conns) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
	if len(c.conns) == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// wait waits until all connections have ended. It closes them when the context ends.
func (c *conns) wait(ctx context.Context) {
	c.mu.Lock()
	if len(c.conns) == 0 {
		c.mu.Unlock()
		return
	}
	if c.empty == nil {
		c.empty = make(chan struct{})
	}
	empty := c.empty
	c.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
		c.cut()
		<-empty
	}
}

func (c *conns) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.Close()
	}
}
