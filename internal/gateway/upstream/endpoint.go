package upstream

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// transport carries requests to one endpoint.
type transport interface {
	// roundTrip sends a request, on a new connection if fresh is set.
	roundTrip(ctx context.Context, req *Request, fresh bool) (*Response, *Error)
	// tidy closes what has been idle for too long.
	tidy(now time.Time)
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
	ejections    atomic.Int32 // since the last success outside of one
	ejectedUntil atomic.Int64 // Unix nanoseconds, 0 while it is in use
}

func newEndpoint(address string, service *Service) *endpoint {
	return &endpoint{
		address: address,
		service: service,
		http1:   newPool(address, &service.options),
		http2:   newHTTP2(address, &service.options),
	}
}

// do sends a request and counts the outcome.
func (e *endpoint) do(ctx context.Context, req *Request, fresh bool) (*Response, *Error) {
	response, err := e.send(ctx, req, fresh)
	if err != nil {
		if err.endpointsFault() {
			e.service.failed(e)
		}
		return nil, err
	}
	// A gateway's error is the word of an endpoint that is overloaded, starting or
	// stopping; other errors may be the application's answer.
	if response.Status >= 502 && response.Status <= 504 {
		e.service.failed(e)
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

// ejector guards the decisions about ejections of a Service.
type ejector struct {
	mu sync.Mutex
	// any is set while an endpoint may be ejected, so that nobody looks at the clock
	// for a Service that is well.
	any atomic.Bool
}

// failed counts a failure, and ejects the endpoint if there were too many in a row. An
// endpoint that fails right after it came back needs no further proof.
func (s *Service) failed(e *endpoint) {
	rules := &s.options.Ejection
	failures := int(e.failures.Add(1))
	if failures < rules.Failures && e.ejections.Load() == 0 {
		return
	}
	s.ejector.mu.Lock()
	defer s.ejector.mu.Unlock()
	now := s.options.Clock.Now()
	if e.ejected(now) || !s.mayEject(now) {
		return
	}
	duration := rules.Max
	if doubled := rules.Base << min(e.ejections.Load(), 30); doubled > 0 && doubled < rules.Max {
		duration = doubled
	}
	e.ejections.Add(1)
	e.failures.Store(0)
	e.ejectedUntil.Store(now.Add(duration).UnixNano())
	s.ejector.any.Store(true)
}

// mayEject reports whether one endpoint more may be left out, of those that get requests.
func (s *Service) mayEject(now time.Time) bool {
	eligible := *s.eligible.Load()
	out := 0
	for _, e := range eligible {
		if e.ejected(now) {
			out++
		}
	}
	allowed := max(1, len(eligible)*s.options.Ejection.MaxPercent/100)
	return out < min(allowed, len(eligible)-1)
}

// succeeded forgets the failures of an endpoint. An answer to a request from before its
// ejection does not end the ejection.
func (s *Service) succeeded(e *endpoint) {
	if e.ejected(s.options.Clock.Now()) {
		return
	}
	s.ejector.mu.Lock()
	defer s.ejector.mu.Unlock()
	e.failures.Store(0)
	e.ejections.Store(0)
	e.ejectedUntil.Store(0)
	ejected := func(e *endpoint) bool { return e.ejectedUntil.Load() != 0 }
	s.ejector.any.Store(slices.ContainsFunc(*s.endpoints.Load(), ejected))
}
