package schedule

import (
	"math/bits"
	"slices"
	"time"
)

const (
	// maxDays bounds the search for a slot. A schedule that Parse accepts has a slot in any nine years: around 2100, there
	// is no 29 February for eight years.
	maxDays = 9 * 366

	// maxShift is how many days later than its date a slot may be. A zone that crossed the date line has skipped a day.
	maxShift = 2
)

// Next returns the first slot after a time.
func (s Schedule) Next(after time.Time) time.Time { return s.next(after, maxDays) }

// NextWithin returns the first slot after a time that is not later than a while after it. Zero: there is none. It looks at no more days
// than that takes, which Next may.
func (s Schedule) NextWithin(after time.Time, while time.Duration) time.Time {
	if slot := s.next(after, daysOf(while)); !slot.After(after.Add(while)) {
		return slot
	}
	return time.Time{}
}

// daysOf is how many days have all slots of a while, wherever it begins.
func daysOf(while time.Duration) int { return int(while/(24*time.Hour)) + 2 + 2*maxShift }

func (s Schedule) next(after time.Time, days int) time.Time {
	d := dateOf(after.In(s.zone)).add(-maxShift)
	for range days {
		if _, found := s.firstAfter(d, after.Unix()); found {
			return s.earliestFrom(d, after.Unix())
		}
		d = d.add(1)
	}
	return time.Time{}
}

// earliestFrom returns the first slot after a time, when the day is the first with such a slot. A slot of the next days may
// be earlier, because a jump of the clock moves slots.
func (s Schedule) earliestFrom(d date, after int64) time.Time {
	earliest, _ := s.firstAfter(d, after)
	for range maxShift {
		d = d.add(1)
		if slot, found := s.firstAfter(d, after); found {
			earliest = min(earliest, slot)
		}
	}
	return time.Unix(earliest, 0).In(s.zone)
}

// Latest returns the last slot that is not after a time.
func (s Schedule) Latest(at time.Time) time.Time { return s.latest(at, maxDays) }

// LatestWithin returns the last slot that is not after a time, and less than a while before it. Zero: there is none. It looks at no more
// days than that takes, which Latest may.
func (s Schedule) LatestWithin(at time.Time, while time.Duration) time.Time {
	if slot := s.latest(at, daysOf(while)); slot.After(at.Add(-while)) {
		return slot
	}
	return time.Time{}
}

func (s Schedule) latest(at time.Time, days int) time.Time {
	// When the clock is set back over midnight, slots of the next day are in the past.
	d := dateOf(at.In(s.zone)).add(1)
	for range days {
		latest, found := s.lastUntil(d, at.Unix())
		if !found {
			d = d.add(-1)
			continue
		}
		for range maxShift {
			d = d.add(-1)
			if slot, found := s.lastUntil(d, at.Unix()); found {
				latest = max(latest, slot)
			}
		}
		return time.Unix(latest, 0).In(s.zone)
	}
	return time.Time{}
}

func (s Schedule) firstAfter(d date, after int64) (slot int64, found bool) {
	slots := s.slotsOf(d)
	i, found := slices.BinarySearch(slots, after+1)
	if !found && i == len(slots) {
		return 0, false
	}
	return slots[i], true
}

func (s Schedule) lastUntil(d date, at int64) (slot int64, found bool) {
	slots := s.slotsOf(d)
	i, found := slices.BinarySearch(slots, at)
	if found {
		return slots[i], true
	}
	if i == 0 {
		return 0, false
	}
	return slots[i-1], true
}

// slotsOf returns the slots of a day, sorted, in seconds since 1970. After a jump of the clock, several may be equal.
func (s Schedule) slotsOf(d date) []int64 {
	if !s.matches(d) {
		return nil
	}
	periods := periodsAround(d, s.zone)
	slots := make([]int64, 0, bits.OnesCount64(s.hours&allHours)*bits.OnesCount64(s.minutes))
	for hour := range 24 {
		if s.hours&(1<<hour) == 0 {
			continue
		}
		for minute := range 60 {
			if s.minutes&(1<<minute) != 0 {
				slots = s.appendSlots(slots, d.wall(hour, minute), periods)
			}
		}
	}
	slices.Sort(slots)
	return slots
}

// appendSlots appends the slots of a local time.
func (s Schedule) appendSlots(slots []int64, wall int64, periods []period) []int64 {
	if len(periods) == 1 {
		return append(slots, wall-periods[0].offset)
	}
	all, jump, unshifted := appendOccurrences(slots, wall, periods)
	switch skipped := len(all) == len(slots); {
	case skipped && s.everyHour():
		return append(slots, unshifted)
	case skipped:
		return append(slots, jump)
	case s.everyHour():
		return all
	default:
		return all[:len(slots)+1]
	}
}
