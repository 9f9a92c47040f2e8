package upstream

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// maxPendingWait bounds how long a request without a deadline waits for a connection.
const maxPendingWait = 5 * time.Second

var (
	errTooManyRequests    = errors.New("too many requests are under way")
	errTooManyPending     = errors.New("too many requests wait for a connection")
	errTooManyConnections = errors.New("there are too many connections")
)

// gate admits requests to a Service up to its limits. Requests that need their own
// connection wait for one in the order of their arrival. But a request whose client has
// used its share is passed by requests of other clients.
type gate struct {
	mu        sync.Mutex
	limits    model.Limits
	requests  clients.Places
	exclusive clients.Places // requests with their own connection
	pending   clients.Places // requests that wait for a connection
	waiting   []*turn
	conns     int // open connections, and those being opened
}

// pass is what a request holds between enter and leave.
type pass struct {
	client    netip.Addr // zero: no particular client
	exclusive bool       // it has its own connection
}

// turn is a waiting request.
type turn struct {
	client netip.Addr
	come   chan struct{} // closed when it may have a connection
}

func (g *gate) setLimits(limits model.Limits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limits = limits
	g.admit()
}

// admit lets waiting requests continue, as long as there is room. The caller holds mu.
func (g *gate) admit() {
	var refused netip.Addr // the last client without room; it may have many requests in a row
	left := g.waiting[:0]
	for i, t := range g.waiting {
		if !g.hasRoom(netip.Addr{}) { // no room for any client
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

// enter waits until a request may be sent, and reports whether it had to. The caller must call leave afterwards, unless it fails.
func (g *gate) enter(ctx context.Context, p pass, wait time.Duration) (waited bool, failure *Error) {
	g.mu.Lock()
	switch {
	case g.limits.Requests > 0 && !g.requests.Room(p.client, g.limits.Requests):
		g.mu.Unlock()
		return false, &Error{Kind: MaxRequests, Err: errTooManyRequests}
	case !p.exclusive:
		g.requests.Take(p.client)
		g.mu.Unlock()
		return false, nil
	case g.hasRoom(p.client): // no waiting request could use the room, otherwise it would have it
		g.requests.Take(p.client)
		g.exclusive.Take(p.client)
		g.mu.Unlock()
		return false, nil
	case !g.pending.Room(p.client, g.limits.Pending):
		g.mu.Unlock()
		return false, &Error{Kind: MaxPending, Err: errTooManyPending}
	}
	t := &turn{client: p.client, come: make(chan struct{})}
	g.requests.Take(p.client)
	g.pending.Take(p.client)
	g.waiting = append(g.waiting, t)
	g.mu.Unlock()
	return true, g.await(ctx, t, wait)
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
	if place < 0 { // it was admitted at the same time
		return nil
	}
	g.waiting = slices.Delete(g.waiting, place, place+1)
	g.pending.Release(t.client)
	g.requests.Release(t.client)
	return failure
}

// leave makes room for other requests.
func (g *gate) leave(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests.Release(p.client)
	if p.exclusive {
		g.exclusive.Release(p.client)
		g.admit()
	}
}

// open counts a connection. It returns false if the limit is reached.
func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limits.Connections > 0 && g.conns >= g.limits.Connections {
		return false
	}
	g.conns++
	return true
}

// force counts a connection that is opened in spite of the limits.
func (g *gate) force() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns++
}

// closed ends the counting of a connection.
func (g *gate) closed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns--
}
