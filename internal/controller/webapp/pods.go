package webapp

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
)

// listen reads the events of pods whose status does not say what keeps them from serving,
// those of the current template first. A rollout that is late is about to be judged.
func (r *Reconciler) listen(ctx context.Context, s *scope, now time.Time) {
	hash := health.CurrentTemplate(s.deployment, s.replicaSets)
	var current, others []*corev1.Pod
	for i := range s.pods {
		if pod := &s.pods[i]; isOfTemplate(pod, hash) {
			current = append(current, pod)
		} else {
			others = append(others, pod)
		}
	}
	started := s.keptStartTime()
	late := !started.IsZero() && s.timeLeft(now) <= 0
	said, again := r.kit.Events.Listen(ctx, append(current, others...), late)
	s.events = said
	s.recheck.After(again.In())
}

// judgePod judges a pod with what events tell. One of a good revision that has not answered
// its probe yet is starting as long as a rollout may take without progress; whether another
// revision is late is for the rollout to say.
func (s *scope) judgePod(pod *corev1.Pod, now time.Time) health.Verdict {
	verdict := health.Pod(pod, s.events[pod.UID]...)
	since, unexplained := health.Unexplained(pod)
	if verdict.State != health.Progressing || !unexplained || !s.isGood(s.target) {
		return verdict
	}
	left := time.Duration(desired.ProgressDeadlineSeconds(s.app))*time.Second - now.Sub(since)
	if left > 0 {
		s.recheck.After(left)
		return verdict
	}
	return health.LatePod(pod, s.events[pod.UID]...)
}
