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

// At reports whether requests are answered with 503 at a time, and until when this stays so. The zero time means that it does not
// change.
func (p *Policy) At(now time.Time) (closed bool, until time.Time) {
	if len(p.windows) == 0 {
		return true, time.Time{}
	}
	// A window may begin before another one ends, so the end is looked for until none goes on. Each step comes to the end of one
	// window, and windows that are always followed by another one are given up after a while: until is then only the time to ask
	// again.
	const maxSteps = 64
	end := now
	for range maxSteps {
		next := p.endAt(end)
		if next.IsZero() {
			break
		}
		end = next
	}
	if end.After(now) {
		return true, end
	}
	for i := range p.windows {
		if next := p.windows[i].schedule.Next(now); !next.IsZero() && (until.IsZero() || next.Before(until)) {
			until = next
		}
	}
	return false, until
}

// endAt returns the last end of the windows that are open at a time. Zero: none is.
func (p *Policy) endAt(at time.Time) (end time.Time) {
	for i := range p.windows {
		w := &p.windows[i]
		begun := w.schedule.Latest(at)
		if ends := begun.Add(w.duration); !begun.IsZero() && ends.After(at) && ends.After(end) {
			end = ends
		}
	}
	return end
}
