package apigateway

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/health"
)

// A gateway that does not hear the API server any more serves what it knew. As long as
// nothing changes nobody sees a difference; so where no replica hears it, all serve on. Where
// another does, the stale one takes no new connections until it hears again.

func staleness(pod *corev1.Pod) health.Trouble {
	return health.Trouble{
		Reason:  slipwayv1alpha1.ReasonReplicaStale,
		Message: fmt.Sprintf("pod %q has not heard from the API server: it may serve old routes, endpoints and Secrets", pod.Name),
	}
}

// judgeStale finds the first pod that is stale: one that gets requests, if there is any.
func (s *scope) judgeStale() {
	for i := range s.pods {
		pod := &s.pods[i]
		if !replica.CanAnswer(pod) || !replica.IsStale(s.answers[pod.UID]) {
			continue
		}
		if replica.IsReady(pod) {
			found := staleness(pod)
			s.served.stale = &found
			return
		}
		if s.served.stale == nil {
			s.served.stale = &health.Trouble{
				Reason:  slipwayv1alpha1.ReasonReplicaStale,
				Message: fmt.Sprintf("pod %q has not heard from the API server: it gets no requests", pod.Name),
			}
		}
	}
}

// standby returns the pods that are to take no new connections while they are stale: none
// unless another that is ready hears the API server, and serves no older spec.
func (s *scope) standby() map[types.UID]bool {
	newest := int64(-1)
	for i := range s.pods {
		pod := &s.pods[i]
		answer := s.answers[pod.UID]
		if !replica.CanAnswer(pod) || !replica.IsReady(pod) || answer.State != replica.Answering {
			continue
		}
		if document := answer.Document; document.UID == s.gateway.UID && document.Current() {
			newest = max(newest, document.Generation)
		}
	}
	pods := map[types.UID]bool{}
	for i := range s.pods {
		pod := &s.pods[i]
		if answer := s.answers[pod.UID]; replica.IsStale(answer) && answer.Document.Generation <= newest {
			pods[pod.UID] = true
		}
	}
	return pods
}
