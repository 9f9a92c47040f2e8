// Package schedule computes when backups run and when routes are closed, and which snapshots are kept. It is pure: it
// imports no client, no clock and no logger. The caller passes the time, and stores what must be remembered.
//
// # Slots
//
// A slot is a time at which a backup is due. Schedule finds slots from a cron expression and a time zone:
//
//   - A slot exists once, also when clocks change. If the clock jumps over a slot's time, the slot is the moment after the
//     jump. If the clock shows a slot's time twice, the slot is the first of the two.
//   - A schedule that fires in every hour (such as "15 * * * *") follows real time instead. When the clock is set back, it
//     fires in both hours that show the same time. When the clock jumps forward, the time between two slots does not grow.
//     If a zone changes its clock by less than an hour, one time between two slots is shorter or longer by that.
//
// A backup without a schedule runs once. It has no Schedule: its only slot is the creation time of the object.
//
// # State
//
// The only state is the last slot that was handled. It is persisted, for example in status. Due computes from it the slot
// to run now, and how many slots were missed. At most one slot is run after a pause, however long the pause was. RunName
// gives the run of a slot its name, so that a slot that is started twice leads to one object.
//
// Many backups have the same schedule. Jitter spreads them: a run starts that long after its slot. Subtract it from the time
// that is passed to Due.
//
//	jitter := schedule.Jitter(string(backup.UID), 10*time.Minute)
//	due := s.Due(last, now.Add(-jitter), deadline)
//	start, wait := due.Slot.Add(jitter), due.Next.Add(jitter).Sub(now)
//
// # Retention
//
// Retention decides which snapshots are kept. Only verified snapshots count for its rules. The newest verified snapshot is
// always kept. Plan.Check refuses a mass deletion, unless a user has confirmed it.
//
//	cron.go       Schedule: reading a cron expression and a time zone
//	slots.go      the next slot and the last one
//	calendar.go   days and local times, also when clocks change
//	due.go        what is to be done now, and how many slots were missed
//	name.go       the name of the run for a slot, and how long after it the run starts
//	advice.go     what a schedule may say that its author did not mean
//	period.go     lengths of time in units of the calendar
//	retention.go  which snapshots are kept
package schedule
