package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// These rules decide when an endpoint is ejected, which means that it gets no requests:
//
//   - Failed requests make an endpoint suspected: no connection; no TLS; a new connection that
//     ends before the head of a response; no response in time although the whole request was
//     sent; a response that must not be forwarded; and the statuses 502, 503 and 504. It takes
//     Ejection.Failures of them in a row, or Ejection.Unreachable without a connection. One is enough
//     if the endpoint was ejected and has not answered since.
//   - These failures are no proof, because a client may be able to cause them, with a request
//     that makes the application fail or take long. So the gateway sends its own request: that
//     of the health check, otherwise GET /. It uses a new connection (over HTTP/2 the existing
//     one). The endpoint is ejected only if this fails too, with one of the failures above.
//     With a health check, the rules of the check decide. Where the protocol is not known, it opens a connection.
//   - Failed health checks alone make an endpoint unhealthy (health.go).
//   - A connection that hangs while the request goes elsewhere (search.go) counts when it has failed.
//   - Nothing else counts: not what the client did (it left, it did not send its body, its
//     request cannot be sent), not what the gateway lacks (ports, files, memory), not a kept
//     connection that the endpoint had closed, and not another protocol than declared.
//   - At most Ejection.MaxPercent of the endpoints are ejected, and never the last one.

const (
	// askTimeout bounds the gateway's own request to a suspected endpoint.
	askTimeout = 2 * time.Second
	// askEvery is the least time between two such requests to the same endpoint.
	askEvery = time.Second
)

// isGatewaysError reports whether a status means that an endpoint is overloaded, starting
// or stopping. Other error statuses may be the application's normal answer.
func isGatewaysError(status int) bool { return status >= 502 && status <= 504 }

// raisesSuspicion reports whether the endpoint may have caused the failure.
func (e *Error) raisesSuspicion() bool {
	switch e.Kind {
	case Connect:
		return e.Unreachable() && !e.hangs
	case Malformed:
		return true
	case Timeout:
		return !e.unsent
	case Reset:
		return !e.stale
	}
	return false
}

// isOurs reports whether the gateway itself lacks a resource, or has a defect.
func isOurs(err error) bool {
	if errors.Is(err, panics.ErrPanicked) {
		return true
	}
	for _, lack := range []error{syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// ejector serializes the ejections of a Service.
type ejector struct {
	mu sync.Mutex
	// any is set while an endpoint may be ejected. So the clock is not read for a Service
	// with healthy endpoints.
	any atomic.Bool
}

// suspect counts a failure. After too many in a row, the gateway sends its own request to
// the endpoint. unreachable tells that there was no connection.
func (s *Service) suspect(ctx context.Context, e *endpoint, unreachable bool) {
	failures, without := int(e.failures.Add(1)), 0
	if unreachable {
		without = int(e.unreachable.Add(1))
	} else {
		e.unreachable.Store(0)
	}
	if failures < s.options.Ejection.Failures && without < s.options.Ejection.Unreachable && e.ejections.Load() == 0 {
		return
	}
	now := s.options.Clock.Now()
	before := e.asked.Load()
	if e.ejected(now) || !s.mayEject(now) || now.UnixNano()-before < int64(askEvery) || !e.asked.CompareAndSwap(before, now.UnixNano()) {
		return
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	s.asking.Go(func() {
		defer cancel()
		defer s.options.Panics.Catch("ask a suspected endpoint")
		if err := s.ask(asking, e); err != nil {
			s.eject(e)
			return
		}
		e.forgive()
	})
}

// forgive forgets the failures in a row.
func (e *endpoint) forgive() {
	e.failures.Store(0)
	e.unreachable.Store(0)
}

// Wait waits until none of the gateway's own requests is in flight.
func (s *Service) Wait() { s.asking.Wait() }

// ask sends the gateway's own request to a suspected endpoint. An error means that the
// endpoint fails for every client.
func (s *Service) ask(ctx context.Context, e *endpoint) error {
	s.set.Lock()
	check, protocol := s.check, s.protocol
	s.set.Unlock()
	if protocol == Stream {
		return s.askStream(ctx, e)
	}
	configured := check != (Check{})
	if !configured {
		check = Check{Protocol: protocol, Path: "/"}
	}
	response, failure := e.send(asOwn(ctx), check.request(e), true)
	switch {
	case failure != nil && failure.Kind == Connect && isOurs(failure.Err):
		return nil
	case failure != nil && (failure.Kind == WrongProtocol || failure.Kind == MaxConnections):
		return nil
	case failure != nil:
		return failure
	}
	defer response.Close()
	if isGatewaysError(response.Status) || (configured && !check.accepts(response.Status)) {
		return fmt.Errorf("%s: the answer is %d", response.Endpoint, response.Status)
	}
	return nil
}

// eject takes an endpoint out of use for some time, if enough others are left.
func (s *Service) eject(e *endpoint) {
	rules := &s.options.Ejection
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
	e.forgive()
	e.ejectedUntil.Store(now.Add(duration).UnixNano())
	s.ejector.any.Store(true)
}

// mayEject reports whether one more of the eligible endpoints may be ejected.
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

// succeeded resets the failures of an endpoint. It does not end an ejection, because the
// request may be older than the ejection.
func (s *Service) succeeded(e *endpoint) {
	if e.ejected(s.options.Clock.Now()) {
		return
	}
	s.ejector.mu.Lock()
	defer s.ejector.mu.Unlock()
	e.forgive()
	e.ejections.Store(0)
	e.ejectedUntil.Store(0)
	ejected := func(e *endpoint) bool { return e.ejectedUntil.Load() != 0 }
	s.ejector.any.Store(slices.ContainsFunc(*s.endpoints.Load(), ejected))
}
