package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/kit/apply"
)

// applyChildren makes the children true. A Gateway of which nothing can be served, or whose parameters cannot be met, gets none;
// those that it has stay, because what was served before may be served again.
func (r *Reconciler) applyChildren(ctx context.Context, s *scope) error {
	if s.deployment.UID == "" && (!anyValid(s.graph.Listeners) || s.input.ParametersProblem != "") {
		return nil
	}
	if s.forgotten != nil {
		return s.forgotten
	}
	in := desired.Inputs{
		Gateway: s.gateway, Image: r.image, Namespaces: r.namespaces, ServiceType: r.serviceType, Parameters: s.parameters, Listeners: s.graph.Listeners,
		Secrets: append(s.graph.Certificates(), s.ownCredentials()...), Current: s.deployment,
	}
	// What a pod needs to start comes first.
	all := []apply.Child{
		apply.Wanted(desired.ServiceAccount(in), s.account),
		apply.Wanted(desired.Role(in), s.role),
		apply.Wanted(desired.RoleBinding(in), s.binding),
		apply.Wanted(desired.HorizontalPodAutoscaler(in), s.autoscaler),
		apply.Wanted(desired.PodDisruptionBudget(in), s.budget),
	}
	service := desired.Service(in)
	if service != nil {
		all = append(all, apply.Wanted(service, s.service))
	}
	// A certificate that a stale cache does not show is no reason to close a port, and old parameters are none to replace pods.
	ctx = apply.Using(ctx, s.shown...)
	applied := r.kit.Applier.All(ctx, s.gateway, all, nil)
	if applied == nil && service != nil {
		applied = r.reviveService(ctx, s.service)
	}
	return errors.Join(applied, r.applyDeployment(ctx, s, in))
}

func (r *Reconciler) applyDeployment(ctx context.Context, s *scope, in desired.Inputs) error {
	err := r.reviveDeployment(ctx, s.deployment)
	if err != nil {
		return err
	}
	if in.Replicas, err = r.statedReplicas(ctx, s); err != nil {
		return err
	}
	if s.deployment.UID == "" {
		made, err := r.kit.Applier.Create(ctx, s.gateway, apply.Child{Desired: desired.Deployment(in), Current: s.deployment})
		if made || err != nil {
			return err
		}
		// The cache does not show it, and what its pods have decides about what is desired.
	}
	_, err = r.kit.Applier.Apply(ctx, s.gateway, apply.Child{Desired: desired.Deployment(in), Current: s.deployment})
	return err
}

// statedReplicas returns the number of pods to ask for, or nil when an autoscaler or somebody else owns it.
func (r *Reconciler) statedReplicas(ctx context.Context, s *scope) (*int32, error) {
	if s.parameters.Autoscaling == nil {
		return s.parameters.Replicas, nil
	}
	return r.kit.Applier.AutoscaledReplicas(ctx, s.gateway, s.deployment, desired.MinReplicas(s.parameters), func(replicas int32) apply.Configuration {
		return desired.Replicas(s.gateway, replicas)
	})
}

// anyValid reports whether one of some listeners is to be served.
func anyValid(listeners []*gatewayapi.Listener) bool {
	return slices.ContainsFunc(listeners, func(l *gatewayapi.Listener) bool { return l.Valid })
}
