package quota

import (
	"math"
	"time"
)

const (
	// maxInterval is the longest time for one request. The API allows 1 request in 24 hours.
	maxInterval = int64(24 * time.Hour)
	// maxTolerance bounds the tolerance, so that no sum of times overflows.
	maxTolerance = int64(math.MaxInt64 / 4)
)

// Limit is a rate limit for the generic cell rate algorithm.
type Limit struct {
	// Interval is the time in nanoseconds in which one request is allowed.
	Interval int64
	// Tolerance is how far requests may be ahead of their time: the interval times the burst.
	Tolerance int64
}

// NewLimit returns the limit for so many requests in a period, of which burst may come at once.
func NewLimit(requests int64, period time.Duration, burst int64) Limit {
	interval := min(max(int64(period)/max(requests, 1), 1), maxInterval)
	burst = max(burst, 1)
	if burst > maxTolerance/interval {
		return Limit{Interval: interval, Tolerance: maxTolerance}
	}
	return Limit{Interval: interval, Tolerance: interval * burst}
}

// Valid reports whether the limit is one that NewLimit returns.
func (l Limit) Valid() bool {
	return l.Interval >= 1 && l.Interval <= maxInterval && l.Tolerance >= l.Interval && l.Tolerance <= maxTolerance
}

// part returns the limit of have out of all replicas. Each has room for one request, because a smaller part would be none.
func (l Limit) part(have, all int64) Limit {
	if have >= all {
		return l
	}
	interval := l.Interval * all / max(have, 1)
	return Limit{Interval: interval, Tolerance: max(l.Tolerance, interval)}
}

// Grant takes up to want requests. next is when the next request would be exactly on time. It returns what was granted, the new
// next, and if less than want was granted, how long to wait for the next one.
func (l Limit) Grant(next, now, want int64) (granted, after int64, wait time.Duration) {
	next = max(next, now)
	granted = min(max((now+l.Tolerance-next)/l.Interval, 0), want)
	next += granted * l.Interval
	if granted < want {
		wait = time.Duration(max(next+l.Interval-now-l.Tolerance, 1))
	}
	return granted, next, wait
}
