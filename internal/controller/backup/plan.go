package backup

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/schedule"
)

// maxJitter bounds how long after its slot a run starts.
const maxJitter = 10 * time.Minute

// plan is when runs are due. It is pure.
type plan struct {
	// slot is the slot to run now; zero: none.
	slot time.Time
	// handled is the newest slot until now, zero before the first one.
	handled time.Time
	// missed is how many slots went by without a run since the last look.
	missed int64
	// next is when the next run starts; zero: never.
	next time.Time
	// expected is the slot that the newest verified copy has to be of, or newer; zero: nothing is promised yet.
	expected time.Time
	// late is when the promise will be broken unless there is a newer copy; zero: never.
	late time.Time
}

// planned computes when runs of a Backup are due. last is when its newest verified copy was read, zero if there is none.
func planned(backup *slipwayv1alpha1.Backup, now, last time.Time) (plan, error) {
	created := backup.CreationTimestamp.Time
	if backup.Spec.Schedule == "" {
		if backup.Status.LastSlot != nil || backup.Spec.Suspend {
			return plan{}, nil
		}
		return plan{slot: created, handled: created}, nil
	}
	s, err := schedule.Parse(backup.Spec.Schedule, backup.Spec.TimeZone)
	if err != nil {
		return plan{}, invalid(err)
	}
	from := created
	if backup.Status.LastSlot != nil {
		from = backup.Status.LastSlot.Time
	}
	var deadline time.Duration
	if d, err := time.ParseDuration(string(backup.Spec.StartingDeadline)); err == nil {
		deadline = d
	}
	interval, jitter := rhythm(s, backup, now)
	due := s.Due(from, now.Add(-jitter), deadline)
	p := plan{slot: due.Slot, handled: due.Handled, missed: int64(due.Missed), next: due.Next.Add(jitter)}
	if backup.Spec.Suspend {
		if !p.slot.IsZero() {
			p.missed++
		}
		p.slot, p.next = time.Time{}, time.Time{}
	}
	p.promise(s, created, last, now, jitter+min(interval, 24*time.Hour))
	return p, nil
}

// rhythm is how much time there is between the next two slots, and how long after its slot a run starts.
func rhythm(s schedule.Schedule, backup *slipwayv1alpha1.Backup, now time.Time) (interval, jitter time.Duration) {
	next := s.Next(now)
	interval = s.Next(next).Sub(next)
	return interval, schedule.Jitter(string(backup.UID), min(maxJitter, interval/10))
}

// promised is what a Backup has promised, whatever else is wrong with its spec: by its schedule, or by the last one that anybody
// could understand. It returns nil where there never was any.
func promised(backup *slipwayv1alpha1.Backup, now, last time.Time) (plan, *slipwayv1alpha1.BackupPromise) {
	spec := backup.Spec
	if spec.Schedule == "" {
		return plan{}, nil
	}
	promise := &slipwayv1alpha1.BackupPromise{Schedule: spec.Schedule, TimeZone: spec.TimeZone}
	s, err := schedule.Parse(promise.Schedule, promise.TimeZone)
	if err != nil {
		if promise = backup.Status.Promise.DeepCopy(); promise == nil {
			return plan{}, nil
		}
		if s, err = schedule.Parse(promise.Schedule, promise.TimeZone); err != nil {
			return plan{}, nil
		}
	}
	var p plan
	interval, jitter := rhythm(s, backup, now)
	p.promise(s, backup.CreationTimestamp.Time, last, now, jitter+min(interval, 24*time.Hour))
	return p, promise
}

// promise computes what the schedule promises: that there is a verified copy of each slot once as much time has gone by as
// there is between two slots, or a day if that is less.
func (p *plan) promise(s schedule.Schedule, created, last, now time.Time, grace time.Duration) {
	expected := s.Latest(now.Add(-grace))
	if expected.After(created) {
		p.expected = expected
	}
	from := last
	if created.After(from) {
		from = created
	}
	if late := s.Next(from).Add(grace); late.After(now) {
		p.late = late
	}
}

// met reports whether the newest verified copy is as new as is promised.
func (p plan) met(last time.Time) bool { return p.expected.IsZero() || !last.Before(p.expected) }

// invalid makes an error of package schedule one of the spec.
func invalid(err error) error {
	p := problemOf(err)
	return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.%s: %s", p.field, p.message)
}
