package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// maxSafeRetries bounds how often a request that no endpoint has seen is sent again.
const maxSafeRetries = 3

// try sends a request until there is an answer, or nothing that may be tried again.
func (s *Service) try(ctx context.Context, req *Request) (*Response, *Error) {
	var tried []*endpoint
	fresh := false
	for safe, asked := 0, 0; ; {
		e := s.pick(tried)
		if e == nil {
			return nil, &Error{Kind: NoEndpoints, Err: errors.New("the Service has no endpoints any more")}
		}
		response, failure := e.do(ctx, req, fresh)
		wait := time.Duration(0)
		switch {
		case safe < maxSafeRetries && failure.safeToRepeat(req) && s.inTime(ctx, req, 0):
			safe++
		case asked < req.Retry.Attempts && req.retries(response, failure):
			wait = s.pause(failure, asked, len(tried))
			if !s.affords(ctx, req, wait) {
				return response, failure
			}
			asked++
		default:
			return response, failure
		}
		if response != nil {
			response.Close()
		}
		if !sleep(ctx, wait) {
			return nil, &Error{Kind: Canceled, Endpoint: e.address, Err: context.Cause(ctx)}
		}
		req.resent++
		if failure != nil && failure.stale {
			fresh = true
			continue
		}
		tried = append(tried, e)
	}
}

// pause returns how long to wait before the next attempt: a random time, on average
// twice as long each time. Where an endpoint cannot be reached, and another has not been
// tried, it is 0: the request is the first that anybody sees of it, and no burden.
func (s *Service) pause(failure *Error, retries, tried int) time.Duration {
	if failure != nil && failure.Kind == Connect && tried+1 < len(*s.eligible.Load()) {
		return 0
	}
	rules := &s.options.Backoff
	longest := rules.Max
	if doubled := rules.Base << min(retries, 30); doubled > 0 && doubled < rules.Max {
		longest = doubled
	}
	return longest - rand.N(longest/2+1)
}

// sleep waits. It reports false if the context ends before.
func sleep(ctx context.Context, wait time.Duration) bool {
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// safeToRepeat reports whether the endpoint cannot have acted on the request, or would
// do the same again after closing a connection that was idle.
func (e *Error) safeToRepeat(req *Request) bool {
	if e == nil || e.Kind == Connect || !req.replayable() {
		return false
	}
	return e.unprocessed || (e.stale && req.idempotent())
}

// retries reports whether the request's own rules cover an outcome.
func (r *Request) retries(response *Response, failure *Error) bool {
	if !r.replayable() {
		return false
	}
	var cause Causes
	switch {
	case failure == nil:
		cause = causeOf(response.Status)
	case failure.Kind == Connect:
		return r.Retry.On&OnConnectFailure != 0
	case failure.Kind == Reset:
		cause = OnReset
	case failure.Kind == Timeout:
		cause = OnTimeout
	}
	return r.Retry.On&cause != 0 && r.idempotent()
}

// inTime reports whether somebody still waits for the response after a while.
func (s *Service) inTime(ctx context.Context, req *Request, wait time.Duration) bool {
	return ctx.Err() == nil && (req.Deadline.IsZero() || s.options.Clock.Now().Add(wait).Before(req.Deadline))
}

// affords reports whether there is time and budget for another attempt after a while.
func (s *Service) affords(ctx context.Context, req *Request, wait time.Duration) bool {
	if !s.inTime(ctx, req, wait) {
		return false
	}
	req.budgetExhausted = wait > 0 && !s.budget.take(s.options.Clock.Now())
	return !req.budgetExhausted
}

const (
	// Of the requests to a Service one in five may be sent again, and ten in a second
	// whatever their number: a Service that fails must not be asked several times as
	// much for it.
	budgetPerRequest = 0.2
	budgetPerSecond  = 10
	// maxBudget is what may be saved up: ten seconds of a Service with few requests.
	maxBudget = 100
)

// budget bounds the retries of a Service.
type budget struct {
	requests atomic.Int64

	mu       sync.Mutex
	left     float64
	counted  int64 // requests that left has been raised for
	earnedAt time.Time
}

func (b *budget) start(now time.Time) { b.left, b.earnedAt = maxBudget, now }

// take takes a retry out of the budget. It reports false if there is none left.
func (b *budget) take(now time.Time) bool {
	requests := b.requests.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	if since := now.Sub(b.earnedAt); since > 0 {
		b.left += since.Seconds() * budgetPerSecond
		b.earnedAt = now
	}
	if since := requests - b.counted; since > 0 {
		b.left += float64(since) * budgetPerRequest
		b.counted = requests
	}
	b.left = min(b.left, maxBudget)
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
