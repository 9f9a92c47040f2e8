package upstream

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// errHangs means that there is no connection yet. It may still come.
var errHangs = errors.New("no connection in time")

// dialing is a connection that is being opened for a request, which may go elsewhere meanwhile. What it leaves goes on: the
// endpoint is avoided until it is known whether there is a connection. So only one for each endpoint goes on without a
// request, and one that hangs is not counted in the gate until it is used.
type dialing struct {
	endpoint *endpoint
	count    func()              // counts the connection in the gate
	keep     func(conn net.Conn) // takes a connection that no request has taken
	opened   chan<- struct{}     // gets a value when there is a connection
	cancel   context.CancelFunc
	done     chan struct{}

	mu      sync.Mutex
	counted bool // in the gate
	waiting bool // the request waits for it
	hangs   bool // it is one of endpoint.hanging until it has ended
	kept    bool // it is endpoint.kept until it has ended
	left    bool // the request has gone
	ended   bool
	conn    net.Conn // nil: there is none, or it was taken
	err     error
}

// run opens the connection.
func (d *dialing) run(ctx context.Context, application string) {
	e := d.endpoint
	s := e.service
	defer s.options.Panics.Catch("connect to an endpoint")
	conn, err := dial(ctx, e, d.uncount, application)
	canceled := ctx.Err() != nil
	d.cancel()
	d.mu.Lock()
	d.ended, d.conn, d.err = true, conn, err
	if d.hangs {
		e.hanging.Add(-1)
	}
	if d.kept {
		e.kept.Store(false)
	}
	left, unnoticed := d.left, d.hangs && !d.waiting && !canceled
	d.mu.Unlock()
	close(d.done)
	switch {
	case err != nil && unnoticed:
		e.unreached(ctx, err)
	case err == nil && left:
		d.release()
	case err == nil:
		select {
		case d.opened <- struct{}{}:
		default: // the request has not seen the last one yet
		}
	}
}

// wait returns the connection, if it comes in time. Otherwise the error is errHangs.
func (d *dialing) wait(ctx context.Context, wait time.Duration, opened <-chan struct{}) (net.Conn, error) {
	d.mu.Lock()
	d.waiting = true
	d.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	late := false
	select {
	case <-d.done:
	case <-opened: // another one
	case <-ctx.Done():
	case <-timer.C:
		late = true
	}
	d.mu.Lock()
	d.waiting = false
	if !d.ended && late && !d.hangs {
		d.hangs = true
		d.endpoint.hanging.Add(1)
		d.uncountLocked()
	}
	conn, err, recount := d.conn, d.err, d.conn != nil && !d.counted
	switch {
	case d.ended:
		d.conn = nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		err = errHangs
	}
	d.counted = d.counted || recount
	d.mu.Unlock()
	if recount {
		d.count()
	}
	return conn, err
}

// uncount ends the counting of the connection.
func (d *dialing) uncount() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uncountLocked()
}

func (d *dialing) uncountLocked() {
	if d.counted {
		d.counted = false
		d.endpoint.service.gate.closed()
	}
}

// leave is called when the request does not need the connection.
func (d *dialing) leave() {
	d.mu.Lock()
	d.left = true
	unused := d.conn != nil
	if !d.ended {
		d.kept = d.hangs && d.endpoint.kept.CompareAndSwap(false, true)
		if !d.kept {
			d.cancel()
		}
	}
	d.mu.Unlock()
	if unused {
		d.release()
	}
}

// release keeps a connection for other requests, unless that would be one too many.
func (d *dialing) release() {
	d.mu.Lock()
	conn := d.conn
	d.conn = nil
	room := d.counted || d.endpoint.service.gate.open()
	d.counted = room
	d.mu.Unlock()
	if !room {
		_ = conn.Close()
		return
	}
	d.keep(conn)
}

// unreached counts that a connection could not be opened while no request waited for it.
func (e *endpoint) unreached(ctx context.Context, err error) {
	if errors.Is(err, errNotHTTP2) || errors.Is(err, errTooManyConnections) {
		return
	}
	if failure := (&Error{Kind: Connect, Endpoint: e.address, Err: err}); failure.raisesSuspicion() {
		e.service.suspect(ctx, e, true)
	}
}
