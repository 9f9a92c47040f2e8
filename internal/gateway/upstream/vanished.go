package upstream

import (
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/sockets"
)

// When an endpoint is gone, its requests in flight go on: its pod may be about to end them, or may only have left the Service. But a
// pod that was deleted with force, or whose node is lost, has vanished without the end of a connection. Only its kernel tells the two
// apart: that of a pod which is there acknowledges what it gets, however long its program takes or reads nothing. So each connection
// to an endpoint that is gone is closed when nothing acknowledges anything for some seconds. What may be sent again then is what may
// be after any other end of a connection.

// vanishedEvery is how often the connections are looked at.
const vanishedEvery = time.Second

// open are the connections to an endpoint.
type open struct {
	mu    sync.Mutex
	conns map[*countedConn]struct{}
	gone  bool // the endpoint
	looks bool // closeSilent runs, or will
}

// add counts a connection as one to the endpoint until it is closed.
func (e *endpoint) add(c *countedConn) {
	o := &e.open
	o.mu.Lock()
	defer o.mu.Unlock()
	c.forget = func() { o.remove(c) }
	if o.conns == nil {
		o.conns = map[*countedConn]struct{}{}
	}
	o.conns[c] = struct{}{}
	if o.gone {
		sockets.AskOften(c.Conn)
		e.lookSoon()
	}
}

func (o *open) remove(c *countedConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
}

// watchVanished closes the connections of an endpoint that is gone, once nothing answers there any more.
func (e *endpoint) watchVanished() {
	o := &e.open
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = true
	for c := range o.conns {
		sockets.AskOften(c.Conn)
	}
	e.lookSoon()
}

// lookSoon needs open.mu held.
func (e *endpoint) lookSoon() {
	if o := &e.open; !o.looks && len(o.conns) > 0 {
		o.looks = true
		time.AfterFunc(vanishedEvery, e.closeSilent)
	}
}

// closeSilent closes the connections on which nothing answers.
func (e *endpoint) closeSilent() {
	defer e.service.options.Panics.Catch("look at the connections of an endpoint that is gone")
	for _, c := range e.silent() {
		_ = c.SetLinger(0) // nothing takes what is still to be sent
		_ = c.Close()
	}
}

// silent returns the connections on which nothing answers, and makes closeSilent look at the others later.
func (e *endpoint) silent() []*countedConn {
	o := &e.open
	o.mu.Lock()
	defer o.mu.Unlock()
	var silent []*countedConn
	for c := range o.conns {
		if sockets.IsSilent(c.Conn) {
			silent = append(silent, c)
		}
	}
	o.looks = false
	e.lookSoon()
	return silent
}
