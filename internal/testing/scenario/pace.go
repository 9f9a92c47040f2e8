package scenario

import (
	"fmt"
	"time"
)

// SettleWithin is how long an operator may take after a step, or after its start, until
// everything is as it should be and nothing happens any more. Only its own time counts. Time
// in which a fault keeps it from knowing what has happened, or from acting, does not count.
const SettleWithin = 10 * time.Second

const (
	// withheldAtMost bounds the time of a step that is not the operator's. The longest case is
	// that 19 runs at a time break watches: a client waits up to half a minute before it
	// watches again, and may find its watch broken once more.
	withheldAtMost = 2 * time.Minute
	// restAtMost is how long it may take beyond what is asked for to see that a cluster is
	// at steady state. That is the test's own affair.
	restAtMost = 10 * time.Second
)

// pace measures a step: how long it takes, and how much of that is the operator's own.
type pace struct {
	// within is how much of its own time the operator may take, rest how long nothing may
	// happen afterwards.
	within, rest time.Duration
	began, last  time.Time
	// own is the operator's time so far, and free how much of it has passed since it was withheld last.
	own, free time.Duration
	// withheld reports whether the time that passes now is not the operator's.
	withheld bool
	// came is what it took until something happened last, and all is own and other time.
	came, all time.Duration
}

func newPace(now time.Time, within, rest time.Duration) *pace {
	return &pace{within: within, rest: rest, began: now, last: now}
}

// look counts the time since the last look, and reports whether what passes from now on
// is the operator's.
func (p *pace) look(now time.Time, withheld bool) {
	if !p.withheld {
		p.own += now.Sub(p.last)
		p.free += now.Sub(p.last)
	}
	if withheld {
		p.free = 0
	}
	p.last, p.withheld = now, withheld
}

// moved notes that something has happened.
func (p *pace) moved() { p.came, p.all = p.own, p.last.Sub(p.began) }

// over says why no more time is left, or is nil. arrived reports whether everything is as
// it should be by now.
func (p *pace) over(arrived bool) error {
	switch {
	case !arrived && p.own > p.within, p.came > p.within:
		return fmt.Errorf("it does not come to rest within %v", p.within)
	case p.free > p.within+p.rest+restAtMost:
		return fmt.Errorf("it does not rest for %v", p.rest)
	case p.last.Sub(p.began)-p.own > withheldAtMost:
		return fmt.Errorf("it does not come to rest within %v, of which only %v are its own", p.last.Sub(p.began), p.own)
	default:
		return nil
	}
}
