// Package maintenance says when the requests of a route are answered with 503. It is pure.
package maintenance

import (
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
	Body        []byte
	ContentType string

	windows []window
}

type window struct {
	schedule schedule.Schedule
	duration time.Duration
}

// lookAhead bounds how far At looks for the next window, so that it costs little however rare that is.
const lookAhead = 24 * time.Hour

// At reports whether requests are answered with 503 at a time, and until when this stays so at the least. Then it may change. The zero
// time means that it does not.
func (p *Policy) At(now time.Time) (closed bool, until time.Time) {
	if len(p.windows) == 0 {
		return true, time.Time{}
	}
	for i := range p.windows {
		w := &p.windows[i]
		if begun := w.schedule.LatestWithin(now, w.duration); !begun.IsZero() {
			if ends := begun.Add(w.duration); ends.After(until) {
				closed, until = true, ends
			}
		}
	}
	if closed {
		return true, until
	}
	until = now.Add(lookAhead)
	for i := range p.windows {
		if next := p.windows[i].schedule.NextWithin(now, lookAhead); !next.IsZero() && next.Before(until) {
			until = next
		}
	}
	return false, until
}
