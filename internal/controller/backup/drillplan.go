package backup

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/schedule"
)

// drillPlan is when drills are due. It is pure.
type drillPlan struct {
	// name is that of the drill to begin now; empty: none.
	name string
	// request identifies the annotation that asks for it. Empty: it is of the schedule.
	request string
	// handled is the newest slot until now; zero: there is no schedule.
	handled time.Time
	// next is when the next drill begins; zero: never.
	next time.Time
}

// plannedDrill computes when drills of a Backup are due. Times of the schedule count from when it is first seen. Of several that
// went by only the newest is made up for. A drill that is asked for by hand is made whatever the schedule says, and stands for
// the slot that is due too.
func plannedDrill(backup *slipwayv1alpha1.Backup, now time.Time) (drillPlan, error) {
	var p drillPlan
	before := backup.Status.Drill
	if before == nil {
		before = &slipwayv1alpha1.BackupDrillStatus{}
	}
	if text := backup.Drill().Schedule; text != "" {
		s, err := schedule.Parse(text, backup.Spec.TimeZone)
		if err != nil {
			return p, invalidDrill(err)
		}
		from := now
		if before.LastSlot != nil {
			from = before.LastSlot.Time
		}
		next := s.Next(now)
		interval := s.Next(next).Sub(next)
		jitter := schedule.Jitter(string(backup.UID)+"/drill", min(maxJitter, interval/10))
		due := s.Due(from, now.Add(-jitter), 0)
		p.handled, p.next = due.Handled, due.Next.Add(jitter)
		if !due.Slot.IsZero() {
			p.name = desired.DrillOfSlot(backup, due.Slot)
		}
		if before.LastSlot == nil {
			p.handled, p.name = now.Truncate(time.Second), ""
		}
		if backup.Spec.Suspend {
			p.name, p.next = "", time.Time{}
		}
	}
	if request := desired.Request(backup); request != "" && request != before.LastRequest {
		p.name, p.request = desired.DrillOfRequest(backup, request), request
	}
	return p, nil
}

// invalidDrill makes an error of package schedule one of the drill's schedule.
func invalidDrill(err error) error {
	p := problemOfDrill(err)
	return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.%s: %s", p.field, p.message)
}
