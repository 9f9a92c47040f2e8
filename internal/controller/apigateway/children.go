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
	// What a pod needs to start comes first.
	children := []apply.Child{
		apply.Wanted(desired.ServiceAccount(s.gateway), s.account),
		apply.Wanted(desired.Role(s.gateway), s.role),
		apply.Wanted(desired.RoleBinding(s.gateway), s.binding),
		apply.Wanted(desired.Service(s.gateway), s.service),
		apply.Wanted(desired.HorizontalPodAutoscaler(s.gateway), s.autoscaler),
		apply.Wanted(desired.PodDisruptionBudget(s.gateway), s.budget),
	}
	err := errors.Join(
		r.kit.Applier.All(ctx, s.gateway, children, nil),
		r.keepQuotaSecret(ctx, s),
		r.applyDeployment(ctx, s),
	)
	if s.hostsUnknown {
		// What is exposed stays as it is: a host that is served must not be lost by it, and none be taken.
		return err
	}
	return errors.Join(err, r.expose(ctx, s))
}

// expose makes what leads to the gateway from outside, with the hosts that belong to it.
func (r *Reconciler) expose(ctx context.Context, s *scope) error {
	ingress := desired.Ingress(s.gateway, s.withheld)
	s.lingers = ingress == nil && s.ingress.UID != ""
	err := errors.Join(
		r.kit.Applier.All(ctx, s.gateway, []apply.Child{apply.Wanted(ingress, s.ingress)}, nil),
		r.gatewayAPI.apply(ctx, s),
	)
	s.lingers = s.lingers || err != nil
	if s.exposeRefusal == nil {
		return err
	}
	s.lingers = s.lingers || len(s.existingHTTPRoutes()) > 0
	return errors.Join(err, s.exposeRefusal)
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
