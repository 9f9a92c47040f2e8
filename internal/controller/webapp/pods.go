package webapp

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listen reads the events of pods whose status does not say what keeps them from serving,
// those of the current template first. A rollout that is late is about to be judged.
func (r *Reconciler) listen(ctx context.Context, s *scope, now time.Time) {
	current, others := s.workload().Split()
	started := s.keptStartTime()
	late := !started.IsZero() && s.isLate(now)
	said, again := r.kit.Events.Listen(ctx, append(current, others...), late)
	s.events = said
	s.recheck.After(again.In())
}

// lookAgain finds what is left today of what refuses pods. A paused application is told of as it is: nothing is to be changed.
func (r *Reconciler) lookAgain(ctx context.Context, s *scope) {
	key := client.ObjectKeyFromObject(s.app)
	if s.app.Spec.Paused || !r.kit.Applier.Ours(s.app, s.deployment) {
		r.kit.Refusals.Forget(ctx, key)
		return
	}
	w, again := r.kit.Refusals.Look(ctx, key, s.workload())
	s.looked, s.refusal = w.Looked, w.Refusal
	s.recheck.After(again.In())
}
