package schedule

import "time"

// MaxMissed bounds how many missed slots are counted.
const MaxMissed = 100

// Due says what is to be done at a time.
type Due struct {
	// Slot is the slot to run now. It is zero if there is none.
	Slot time.Time
	// Handled is the newest slot until now. Persist it, and pass it as last the next time. It is last if there is no newer
	// slot.
	Handled time.Time
	// Missed is how many slots since last are not run. It is at most MaxMissed.
	Missed int
	// MoreMissed means that more than MaxMissed slots were missed.
	MoreMissed bool
	// Next is the first slot after now. Call Due again at that time.
	Next time.Time
}

// Due returns what is to be done now. last is the last slot that was handled, or the time from which on the schedule holds,
// such as the creation time of the object. Of several slots since then the newest is run, and only if it is not older than
// startingDeadline. The others are missed. A startingDeadline of 0 is no bound.
//
// If the clock was set back, so that last is in the future, no slot is run twice: the next one is the one after last.
func (s Schedule) Due(last, now time.Time, startingDeadline time.Duration) Due {
	if now.Before(last) {
		return Due{Handled: last, Next: s.Next(last)}
	}
	due := Due{Handled: last, Next: s.Next(now)}
	newest := s.Latest(now)
	if !newest.After(last) {
		return due
	}
	due.Handled = newest
	due.Missed, due.MoreMissed = s.count(last, newest)
	if startingDeadline > 0 && now.Sub(newest) > startingDeadline {
		due.Missed, due.MoreMissed = addMissed(due)
		return due
	}
	due.Slot = newest
	return due
}

// addMissed counts one more missed slot.
func addMissed(due Due) (missed int, more bool) {
	if due.Missed == MaxMissed {
		return MaxMissed, true
	}
	return due.Missed + 1, due.MoreMissed
}

// count counts the slots after one time and before another one, up to MaxMissed.
func (s Schedule) count(after, before time.Time) (missed int, more bool) {
	for slot := s.Next(after); slot.Before(before); slot = s.Next(slot) {
		if missed == MaxMissed {
			return missed, true
		}
		missed++
	}
	return missed, false
}
