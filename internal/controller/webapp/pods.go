package webapp

import (
	"context"
	"time"
)

// listen reads the events of pods whose status does not say what keeps them from serving,
// those of the current template first. A rollout that is late is about to be judged.
func (r *Reconciler) listen(ctx context.Context, s *scope, now time.Time) {
	current, others := s.workload().Split()
	started := s.keptStartTime()
	late := !started.IsZero() && s.isLate(now)
	warnings, again := r.kit.Events.Listen(ctx, append(current, others...), late)
	s.events = warnings
	s.recheck.After(again.In())
}
