// Package maintenance says when the requests of a route are answered with 503. It is pure.
package maintenance

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway/internal/schedule"
)

// Rule says when requests are answered with 503.
type Rule struct {
	// Windows are when. Empty: always.
	Windows []Window
	// TimeZone is that of the windows. Empty: UTC.
	TimeZone string
	// Body and ContentType are those of the answer. Without a body, the answer says the status.
	Body        string
	ContentType string
}

// Window is a time that comes again and again.
type Window struct {
	// Schedule is when it begins, as cron has it.
	Schedule string
	// Duration is how long it lasts.
	Duration time.Duration
}

// Policy is a compiled Rule.
type Policy struct {
	*Closing

	Body        string
	ContentType string
}

// Closing says when a route is closed. Rules with the same windows share one.
type Closing struct {
	windows []window
	// last is what was found last. It is the same until a window begins or ends.
	last    atomic.Pointer[found]
	looking sync.Mutex
}

type window struct {
	schedule schedule.Schedule
	duration time.Duration
}

// found is what holds from a time until it has to be looked again.
type found struct {
	closed              bool
	ends                time.Time // of all windows that are open
	looked, lookedAgain time.Time
}

// lookAhead bounds how far is looked for the next window, so that a look costs little however rare that is.
const lookAhead = 24 * time.Hour

// At reports whether requests are answered with 503 at a time, and when the windows that are open then end. The zero time means that
// nobody knows. now has no monotonic reading: windows are of the clock on the wall, which may be set.
func (c *Closing) At(now time.Time) (closed bool, ends time.Time) {
	if len(c.windows) == 0 {
		return true, time.Time{}
	}
	last := c.last.Load()
	if !last.holds(now) {
		c.looking.Lock()
		defer c.looking.Unlock()
		if last = c.last.Load(); !last.holds(now) { // many requests come at once when a window begins
			last = c.look(now)
			c.last.Store(last)
		}
	}
	return last.closed, last.ends
}

// holds reports whether it need not be looked again.
func (f *found) holds(now time.Time) bool {
	return f != nil && !now.Before(f.looked) && now.Before(f.lookedAgain)
}

func (c *Closing) look(now time.Time) *found {
	f := &found{looked: now, lookedAgain: now.Add(lookAhead)}
	for i := range c.windows {
		w := &c.windows[i]
		if begun := w.schedule.LatestWithin(now, w.duration); !begun.IsZero() {
			if end := begun.Add(w.duration); end.After(f.ends) {
				f.closed, f.ends = true, end
			}
		}
		if next := w.schedule.NextWithin(now, lookAhead); !next.IsZero() && next.Before(f.lookedAgain) {
			f.lookedAgain = next
		}
	}
	if f.closed && f.ends.Before(f.lookedAgain) {
		f.lookedAgain = f.ends
	}
	return f
}
