package apply

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AutoscaledReplicas returns the number of pods to state for a Deployment whose number an
// autoscaler owns: nil, or the minimum where the autoscaler has nothing to begin with. On
// the way from a stated number to an autoscaled one it never falls back to 1, the default
// of a field without owner: it is handed to a second field manager before this one lets
// go of it. state makes a configuration that states the number and nothing else.
func (a *Applier) AutoscaledReplicas(ctx context.Context, owner client.Object, deployment *appsv1.Deployment, minimum int32, state func(replicas int32) Configuration) (*int32, error) {
	if deployment.UID == "" {
		// Its number of pods counts, even where the cache does not show it.
		exists, err := a.getLive(ctx, owner, Child{Desired: state(minimum), Current: deployment})
		if err != nil {
			return nil, err
		}
		if exists {
			a.invalidate(owner)
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
	return nil, a.HandOver(ctx, owner, Child{Desired: state(*live), Current: deployment})
}
