package upstream

import (
	"context"
	"sync/atomic"
	"time"
)

// transport carries requests to one endpoint.
type transport interface {
	// roundTrip sends a request, on a new connection if fresh is set.
	roundTrip(ctx context.Context, req *Request, fresh bool) (*Response, *Error)
	// tidy closes what has been idle for too long.
	tidy(now time.Time)
	// evict closes a connection that is idle, and reports false if there is none.
	evict() bool
	// drain closes every connection as soon as no request is on it.
	drain()
}

// endpoint is one address of a Service: its connections, load and health.
type endpoint struct {
	address  string
	service  *Service
	http1    transport
	http2    transport
	inFlight atomic.Int64
	removed  atomic.Bool

	unhealthy bool   // its checks say so; guarded by Service.set
	stopCheck func() // ends its checks, nil while there are none; guarded by Service.set

	failures     atomic.Int32 // in a row
	asked        atomic.Int64 // when the gateway asked itself, Unix nanoseconds
	ejections    atomic.Int32 // since the last success outside of one
	ejectedUntil atomic.Int64 // Unix nanoseconds, 0 while it is in use
}

func newEndpoint(address string, service *Service) *endpoint {
	return &endpoint{
		address: address,
		service: service,
		http1:   newPool(address, service),
		http2:   newHTTP2(address, service),
	}
}

// do sends a request and counts the outcome.
func (e *endpoint) do(ctx context.Context, req *Request, fresh bool) (*Response, *Error) {
	response, err := e.send(ctx, req, fresh)
	if err != nil {
		if err.raisesSuspicion() {
			e.service.suspect(ctx, e)
		}
		return nil, err
	}
	if isGatewaysError(response.Status) {
		e.service.suspect(ctx, e)
	} else if e.failures.Load() != 0 || e.ejections.Load() != 0 {
		e.service.succeeded(e)
	}
	return response, nil
}

// send sends a request, whatever the outcome says of the endpoint.
func (e *endpoint) send(ctx context.Context, req *Request, fresh bool) (*Response, *Error) {
	e.inFlight.Add(1)
	transport := e.http1
	if req.Protocol == HTTP2 {
		transport = e.http2
	}
	response, err := transport.roundTrip(ctx, req, fresh)
	if err != nil {
		e.leave()
		return nil, err
	}
	response.endpoint = e
	return response, nil
}

// ownKey marks the context of a request of the gateway's own.
type ownKey struct{}

// asOwn is the context of a request of the gateway's own: what it finds out must not depend
// on how many connections there are, so that no bound keeps it from opening one.
func asOwn(ctx context.Context) context.Context { return context.WithValue(ctx, ownKey{}, true) }

func isOwn(ctx context.Context) bool { return ctx.Value(ownKey{}) != nil }

// leave takes a request off the endpoint.
func (e *endpoint) leave() {
	if e.inFlight.Add(-1) == 0 && e.removed.Load() {
		e.drain()
	}
}

// remove is called with Service.set held.
func (e *endpoint) remove() {
	e.stopChecks()
	e.removed.Store(true)
	e.drain()
}

func (e *endpoint) drain() {
	e.http1.drain()
	e.http2.drain()
}

func (e *endpoint) ejected(now time.Time) bool {
	until := e.ejectedUntil.Load()
	return until != 0 && now.UnixNano() < until
}
