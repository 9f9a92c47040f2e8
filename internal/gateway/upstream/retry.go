package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// maxSafeRetries bounds the retries of a request that no endpoint has processed.
const maxSafeRetries = 3

// try sends a request until there is a response or a failure that must not be retried.
func (s *Service) try(ctx context.Context, req *Request) (*Response, *Error) {
	var tried []*endpoint
	fresh := false
	req.search = search{}
	defer req.search.leave()
	for safe, asked := 0, 0; ; {
		e := req.search.choose(s, func() *endpoint { return s.choose(req, tried) })
		if e == nil {
			return nil, &Error{Kind: NoEndpoints, Err: errors.New("the Service has no endpoints any more")}
		}
		response, failure := e.do(ctx, req, fresh)
		if req.search.goesOn(s, e, failure) && s.mayGoOn(ctx, req) {
			tried = req.search.next(s, tried, e)
			continue
		}
		wait := time.Duration(0)
		switch {
		case safe < maxSafeRetries && failure.safeToRepeat(req) && s.inTime(ctx, req, 0):
			safe++
		case asked < req.Retry.Attempts && req.retries(response, failure):
			wait = max(s.pause(failure, asked, len(tried)), req.Retry.Wait)
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
		req.search.restart()
		req.resent++
		if failure != nil && failure.stale {
			fresh = true
			continue
		}
		tried = append(tried, e)
	}
}

// pause returns how long to wait before the next attempt: a random time whose average
// doubles each time. It is 0 if the endpoint cannot be reached and another one was not
// tried yet, because then no endpoint has had any load from the request.
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

// sleep waits. It returns false if the context ends first.
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

// safeToRepeat reports whether the endpoint cannot have processed the request, or has
// closed an idle connection under an idempotent request.
func (e *Error) safeToRepeat(req *Request) bool {
	if e == nil || e.Kind == Connect || !req.replayable() {
		return false
	}
	return e.unprocessed || (e.stale && req.idempotent())
}

// retries reports whether the request's own rules allow a retry.
func (r *Request) retries(response *Response, failure *Error) bool {
	if !r.replayable() {
		return false
	}
	var cause model.Causes
	switch {
	case failure == nil && r.Retry.OnStatus != nil && r.Retry.OnStatus(response.Status):
		return r.idempotent()
	case failure == nil:
		cause = causeOf(response.Status)
	case failure.Kind == Connect:
		return r.Retry.On&model.OnConnectFailure != 0 && !failure.hangs // all other endpoints had their time, too
	case failure.Kind == Reset:
		cause = model.OnReset
	case failure.Kind == Timeout:
		cause = model.OnTimeout
	}
	return r.Retry.On&cause != 0 && r.idempotent()
}

// mayGoOn reports whether a request that was not sent may be sent to another endpoint.
func (s *Service) mayGoOn(ctx context.Context, req *Request) bool {
	return req.replayable() && s.inTime(ctx, req, 0)
}

// inTime reports whether the request is still wanted after the wait.
func (s *Service) inTime(ctx context.Context, req *Request, wait time.Duration) bool {
	return ctx.Err() == nil && (req.Deadline.IsZero() || s.options.Clock.Now().Add(wait).Before(req.Deadline))
}

// affords reports whether time and budget allow another attempt after the wait.
func (s *Service) affords(ctx context.Context, req *Request, wait time.Duration) bool {
	if !s.inTime(ctx, req, wait) {
		return false
	}
	req.budgetExhausted = wait > 0 && !s.budget.take(s.options.Clock.Now())
	return !req.budgetExhausted
}

const (
	// One in five requests to a Service may be sent again, and in addition ten per second.
	// So a failing Service does not get several times its normal load.
	budgetPerRequest = 0.2
	budgetPerSecond  = 10
	// maxBudget bounds the saved budget. It is what a Service with few requests gets in ten
	// seconds.
	maxBudget = 100
)

// budget bounds the retries of a Service.
type budget struct {
	requests atomic.Int64

	mu       sync.Mutex
	left     float64
	counted  int64 // the number of requests already counted in left
	earnedAt time.Time
}

func (b *budget) start(now time.Time) { b.left, b.earnedAt = maxBudget, now }

// take takes one retry from the budget. It returns false if none is left.
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
