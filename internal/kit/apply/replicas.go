package apply

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AutoscaledReplicas returns the number of pods to apply for a Deployment whose number an
// autoscaler owns: nil, or the minimum where the autoscaler has nothing to begin with. A
// field without an owner falls back to its default, here 1. So on the way from an applied
// number to an autoscaled one the field is handed to a second field manager before this one
// lets go of it. only makes a configuration of the number and nothing else.
func (a *Applier) AutoscaledReplicas(
	ctx context.Context, owner client.Object, deployment *appsv1.Deployment, minimum int32, only func(replicas int32) Configuration,
) (*int32, error) {
	if deployment.UID == "" {
		// Its number of pods counts, even where the cache does not show it.
		if _, err := a.getLive(ctx, owner, Child{Desired: only(minimum), Current: deployment}); err != nil {
			return nil, err
		}
	}
	live := deployment.Spec.Replicas
	if live == nil || *live < minimum {
		// What is autoscaled starts with its lower bound, and an autoscaler leaves a Deployment
		// without pods alone.
		return &minimum, nil
	}
	ours, err := a.Owns(deployment, "spec", "replicas")
	if err != nil || !ours {
		return nil, err
	}
	return nil, a.HandOver(ctx, owner, Child{Desired: only(*live), Current: deployment})
}
