package upstream

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
)

// Limits bound what a Service is asked for at a time. 0 is no bound, except for Pending. Of
// each a client gets no more than its share (clients.Places).
type Limits struct {
	// Connections to all endpoints together, those of health checks aside. Over HTTP/1.1 a
	// request has one to itself.
	Connections int
	// Pending are the requests that wait for a connection.
	Pending int
	// Requests are those under way, up to the end of their responses, and those that wait.
	Requests int
}

// maxPendingWait bounds the wait for a connection of a request without a deadline.
const maxPendingWait = 5 * time.Second

var (
	errTooManyRequests    = errors.New("too many requests are under way")
	errTooManyPending     = errors.New("too many requests wait for a connection")
	errTooManyConnections = errors.New("there are too many connections")
)

// gate lets as many requests to a Service as its limits allow. Those that need a connection
// of their own wait for one in the order in which they came, except for those of a client
// that has its share: others go past them.
type gate struct {
	mu        sync.Mutex
	limits    Limits
	requests  clients.Places
	exclusive clients.Places // requests with a connection of their own
	pending   clients.Places // requests that wait for one
	waiting   []*turn
	conns     int // that are open or being opened
}

// pass is what a request is let in with, and leaves with.
type pass struct {
	client    netip.Addr // zero: nobody in particular
	exclusive bool       // it has a connection of its own
}

// turn is a request that waits for a connection.
type turn struct {
	client netip.Addr
	come   chan struct{} // closed when it has one
}

func (g *gate) setLimits(limits Limits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limits = limits
	g.admit()
}

// admit lets those in who wait, as long as there is room. It is called with mu held.
func (g *gate) admit() {
	var refused netip.Addr // the last client without room, which may have many in a row
	left := g.waiting[:0]
	for i, t := range g.waiting {
		if !g.hasRoom(netip.Addr{}) { // for nobody
			left = append(left, g.waiting[i:]...)
			break
		}
		if (t.client == refused && refused.IsValid()) || !g.hasRoom(t.client) {
			refused = t.client
			left = append(left, t)
			continue
		}
		g.pending.Release(t.client)
		g.exclusive.Take(t.client)
		close(t.come)
	}
	clear(g.waiting[len(left):])
	g.waiting = left
}

func (g *gate) hasRoom(client netip.Addr) bool {
	return g.limits.Connections <= 0 || g.exclusive.Room(client, g.limits.Connections)
}

// enter waits until a request may be sent. Who enters leaves.
func (g *gate) enter(ctx context.Context, p pass, wait time.Duration) *Error {
	g.mu.Lock()
	switch {
	case g.limits.Requests > 0 && !g.requests.Room(p.client, g.limits.Requests):
		g.mu.Unlock()
		return &Error{Kind: MaxRequests, Err: errTooManyRequests}
	case !p.exclusive:
		g.requests.Take(p.client)
		g.mu.Unlock()
		return nil
	case g.hasRoom(p.client): // none who waits has, or it would have been let in
		g.requests.Take(p.client)
		g.exclusive.Take(p.client)
		g.mu.Unlock()
		return nil
	case !g.pending.Room(p.client, g.limits.Pending):
		g.mu.Unlock()
		return &Error{Kind: MaxPending, Err: errTooManyPending}
	}
	t := &turn{client: p.client, come: make(chan struct{})}
	g.requests.Take(p.client)
	g.pending.Take(p.client)
	g.waiting = append(g.waiting, t)
	g.mu.Unlock()
	return g.await(ctx, t, wait)
}

func (g *gate) await(ctx context.Context, t *turn, wait time.Duration) *Error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	failure := &Error{Kind: MaxConnections, Err: errTooManyConnections}
	select {
	case <-t.come:
		return nil
	case <-ctx.Done():
		failure = &Error{Kind: Canceled, Err: context.Cause(ctx)}
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	place := slices.Index(g.waiting, t)
	if place < 0 { // its turn came at the same time
		return nil
	}
	g.waiting = slices.Delete(g.waiting, place, place+1)
	g.pending.Release(t.client)
	g.requests.Release(t.client)
	return failure
}

// leave makes room for another request.
func (g *gate) leave(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests.Release(p.client)
	if p.exclusive {
		g.exclusive.Release(p.client)
		g.admit()
	}
}

// open counts a connection. It reports false if there are as many as may be.
func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limits.Connections > 0 && g.conns >= g.limits.Connections {
		return false
	}
	g.conns++
	return true
}

// force counts a connection that is opened whatever the limits are.
func (g *gate) force() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns++
}

// closed counts a connection no more.
func (g *gate) closed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns--
}
