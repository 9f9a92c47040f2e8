package apigateway

import (
	"context"
	"errors"

	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
)

// applyChildren makes the children true. One that fails does not keep the others from
// being made.
func (r *Reconciler) applyChildren(ctx context.Context, s *scope) error {
	return errors.Join(
		// What a pod needs to start comes first.
		r.kit.Applier.All(ctx, s.gateway, []apply.Child{
			apply.Wanted(desired.ServiceAccount(s.gateway), s.account),
			apply.Wanted(desired.Role(s.gateway), s.role),
			apply.Wanted(desired.RoleBinding(s.gateway), s.binding),
			apply.Wanted(desired.Service(s.gateway), s.service),
			apply.Wanted(desired.HorizontalPodAutoscaler(s.gateway), s.autoscaler),
			apply.Wanted(desired.PodDisruptionBudget(s.gateway), s.budget),
			apply.Wanted(desired.Ingress(s.gateway), s.ingress),
		}, nil),
		r.keepQuotaSecret(ctx, s),
		r.applyDeployment(ctx, s),
		r.gatewayAPI.apply(ctx, s),
	)
}

func (r *Reconciler) applyDeployment(ctx context.Context, s *scope) error {
	replicas, err := r.statedReplicas(ctx, s)
	if err != nil {
		return err
	}
	child := func() apply.Child {
		in := desired.Inputs{Gateway: s.gateway, Image: r.image, Current: s.deployment, Replicas: replicas}
		return apply.Child{Desired: desired.Deployment(in), Current: s.deployment}
	}
	if s.deployment.UID == "" {
		made, err := r.kit.Applier.Create(ctx, s.gateway, child())
		if err != nil || made {
			return err
		}
		// The cache does not show it, and what its pods have decides about what is desired.
	}
	_, err = r.kit.Applier.Apply(ctx, s.gateway, child())
	return err
}

// statedReplicas returns the number of pods to ask for, or nil when an autoscaler
// owns it.
func (r *Reconciler) statedReplicas(ctx context.Context, s *scope) (*int32, error) {
	minimum := desired.MinReplicas(s.gateway)
	if s.gateway.Spec.Autoscaling == nil {
		return &minimum, nil
	}
	return r.kit.Applier.AutoscaledReplicas(ctx, s.gateway, s.deployment, minimum, func(replicas int32) apply.Configuration {
		return desired.Replicas(s.gateway, replicas)
	})
}
