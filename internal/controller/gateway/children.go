package gateway

import (
	"context"
	"errors"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
)

// applyChildren makes the children true. A Gateway of which nothing can be served gets none; those that it has stay, because
// what was served before may be served again.
func (r *Reconciler) applyChildren(ctx context.Context, s *scope) error {
	if !s.anyValid() && s.deployment.UID == "" {
		return nil
	}
	in := desired.Inputs{Gateway: s.gateway, Image: r.image, ServiceType: r.serviceType, Listeners: s.graph.Listeners, Certificates: s.graph.Certificates(), Current: s.deployment}
	// What a pod needs to start comes first.
	all := []apply.Child{
		apply.Wanted(desired.ServiceAccount(in), s.account),
		apply.Wanted(desired.Role(in), s.role),
		apply.Wanted(desired.RoleBinding(in), s.binding),
		apply.Wanted(desired.PodDisruptionBudget(in), s.budget),
	}
	if service := desired.Service(in); service != nil {
		all = append(all, apply.Wanted(service, s.service))
	}
	// A certificate that a stale cache does not show is no reason to close a port.
	ctx = apply.Using(ctx, s.shown...)
	err := r.kit.Applier.All(ctx, s.gateway, all, nil)
	if s.deployment.UID == "" {
		made, failed := r.kit.Applier.Create(ctx, s.gateway, apply.Child{Desired: desired.Deployment(in), Current: s.deployment})
		if made || failed != nil {
			return errors.Join(err, failed)
		}
		// The cache does not show it, and what its pods have decides about what is desired.
	}
	_, failed := r.kit.Applier.Apply(ctx, s.gateway, apply.Child{Desired: desired.Deployment(in), Current: s.deployment})
	return errors.Join(err, failed)
}

// anyValid tells that a listener is to be served.
func (s *scope) anyValid() bool {
	for _, l := range s.graph.Listeners {
		if l.Valid {
			return true
		}
	}
	return false
}
