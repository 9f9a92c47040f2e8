package schedule

import (
	"math"
	"time"
)

const (
	secondsPerDay = 24 * 60 * 60
	// maxOffset bounds the offset of a time zone from UTC.
	maxOffset = secondsPerDay
)

// date is a day of the calendar, without a time zone.
type date struct {
	year  int
	month time.Month
	day   int
}

func dateOf(t time.Time) date {
	year, month, day := t.Date()
	return date{year, month, day}
}

func (d date) midnightUTC() time.Time { return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC) }

func (d date) add(days int) date { return dateOf(d.midnightUTC().AddDate(0, 0, days)) }

func (d date) weekday() time.Weekday { return d.midnightUTC().Weekday() }

// wall returns a local time of the day in seconds since 1970, as if the zone were UTC. It may be a time that the zone does
// not have, or has twice.
func (d date) wall(hour, minute int) int64 {
	return d.midnightUTC().Unix() + int64(hour)*60*60 + int64(minute)*60
}

// period is a time in which a zone has one offset from UTC. All fields are seconds.
type period struct{ start, end, offset int64 }

// periodsAround returns the periods of a zone that a local time of the day may belong to, in order.
func periodsAround(d date, zone *time.Location) []period {
	t := time.Unix(d.wall(0, 0)-maxOffset, 0).In(zone)
	last := d.wall(0, 0) + secondsPerDay + maxOffset
	var periods []period
	for {
		start, end := t.ZoneBounds()
		_, offset := t.Zone()
		p := period{start: math.MinInt64, end: math.MaxInt64, offset: int64(offset)}
		if !start.IsZero() {
			p.start = start.Unix()
		}
		if end.After(t) { // of some days from 2040 on, ZoneBounds of Go 1.26 returns an end that is over
			p.end = end.Unix()
		}
		periods = append(periods, p)
		if p.end > last {
			return periods
		}
		t = end
	}
}

// appendOccurrences appends the times at which the clock shows a local time, in order. It is shown twice when the clock is
// set back. When the clock jumps over it, nothing is appended. Then jump is the moment after the jump, and unshifted is when
// the time would have come without the jump.
func appendOccurrences(shown []int64, wall int64, periods []period) (_ []int64, jump, unshifted int64) {
	for i, p := range periods {
		at := wall - p.offset
		if p.start <= at && at < p.end {
			shown = append(shown, at)
		}
		if i+1 < len(periods) && at >= p.end && wall-periods[i+1].offset < p.end {
			jump, unshifted = p.end, at
		}
	}
	return shown, jump, unshifted
}
