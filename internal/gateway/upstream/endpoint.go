package upstream

import (
	"context"
	"sync/atomic"
	"time"
)

// transport carries requests to one endpoint.
type transport interface {
	// roundTrip sends a request. If fresh is set, it uses a new connection.
	roundTrip(ctx context.Context, req *Request, fresh bool) (*Response, *Error)
	// tidy closes connections that were idle for too long.
	tidy(now time.Time)
	// evict closes an idle connection. It returns false if there is none.
	evict() bool
	// drain closes every connection as soon as it has no request.
	drain()
}

// endpoint is one address of a Service, with its connections, load and health.
type endpoint struct {
	address  string
	service  *Service
	http1    transport
	http2    transport
	inFlight atomic.Int64
	removed  atomic.Bool
	open     open
	place    atomic.Pointer[Place] // nil: not made yet

	hanging atomic.Int32 // connections that hang while they are opened
	kept    atomic.Bool  // one of them goes on without its request (not over HTTP/2)

	unhealthy bool   // from its health checks; guarded by Service.set
	stopCheck func() // stops its checks, nil while there are none; guarded by Service.set

	failures     atomic.Int32 // in a row
	unreachable  atomic.Int32 // failures to connect in a row
	asked        atomic.Int64 // the time of the gateway's own last request, Unix nanoseconds
	ejections    atomic.Int32 // ejections since the last success outside of an ejection
	ejectedUntil atomic.Int64 // Unix nanoseconds, 0 while it is not ejected
}

func newEndpoint(address string, service *Service) *endpoint {
	e := &endpoint{address: address, service: service}
	e.http1, e.http2 = newPool(e, service), newHTTP2(e, service)
	return e
}

// do sends a request and counts its result.
func (e *endpoint) do(ctx context.Context, req *Request, fresh bool) (*Response, *Error) {
	response, err := e.send(ctx, req, fresh)
	if err != nil {
		if err.raisesSuspicion() {
			e.service.suspect(ctx, e, err.Kind == Connect)
		}
		return nil, err
	}
	counted := false
	defer func() {
		if !counted { // a panic
			response.Close()
		}
	}()
	if isGatewaysError(response.Status) {
		e.service.suspect(ctx, e, false)
	} else if e.failures.Load() != 0 || e.ejections.Load() != 0 {
		e.service.succeeded(e)
	}
	counted = true
	return response, nil
}

// send sends a request without counting its result for the health of the endpoint.
func (e *endpoint) send(ctx context.Context, req *Request, fresh bool) (*Response, *Error) {
	e.inFlight.Add(1)
	transport := e.http1
	if req.Protocol == HTTP2 {
		transport = e.http2
	}
	answered := false
	defer func() {
		if !answered { // an error or a panic
			e.leave()
		}
	}()
	response, err := transport.roundTrip(ctx, req, fresh)
	if err != nil {
		return nil, err
	}
	answered, response.endpoint = true, e
	return response, nil
}

// ownKey marks the context of the gateway's own requests.
type ownKey struct{}

// asOwn marks a context as that of the gateway's own request. Such a request may open a
// connection above the limits, because its result must not depend on the number of
// connections.
func asOwn(ctx context.Context) context.Context { return context.WithValue(ctx, ownKey{}, true) }

func isOwn(ctx context.Context) bool { return ctx.Value(ownKey{}) != nil }

// leave ends the counting of a request.
func (e *endpoint) leave() {
	if e.inFlight.Add(-1) == 0 && e.removed.Load() {
		e.drain()
	}
}

// remove needs Service.set held.
func (e *endpoint) remove() {
	e.stopChecks()
	e.removed.Store(true)
	e.drain()
	e.watchVanished()
}

func (e *endpoint) drain() {
	e.http1.drain()
	e.http2.drain()
}

func (e *endpoint) ejected(now time.Time) bool {
	until := e.ejectedUntil.Load()
	return until != 0 && now.UnixNano() < until
}
