package apigateway

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
)

// applyChildren makes the children true. One that fails does not keep the others from
// being made.
func (r *Reconciler) applyChildren(ctx context.Context, s *scope) error {
	// First: an autoscaler that is no longer wanted must not change a number of pods that
	// is stated again.
	errs := []error{r.deleteUnwanted(ctx, s)}
	for _, child := range s.childrenBesideDeployment() {
		_, err := r.applier.Apply(ctx, s.gateway, child)
		errs = append(errs, err)
	}
	errs = append(errs, r.applyDeployment(ctx, s), r.gatewayAPI.apply(ctx, s))
	return errors.Join(errs...)
}

// childrenBesideDeployment are the wanted children whose content depends on nothing but
// the spec. What a pod needs to start comes first.
func (s *scope) childrenBesideDeployment() []apply.Child {
	children := []apply.Child{
		{Desired: desired.ServiceAccount(s.gateway), Current: s.account},
		{Desired: desired.Role(s.gateway), Current: s.role},
		{Desired: desired.RoleBinding(s.gateway), Current: s.binding},
		{Desired: desired.Service(s.gateway), Current: s.service},
	}
	if autoscaler := desired.HorizontalPodAutoscaler(s.gateway); autoscaler != nil {
		children = append(children, apply.Child{Desired: autoscaler, Current: s.autoscaler})
	}
	if budget := desired.PodDisruptionBudget(s.gateway); budget != nil {
		children = append(children, apply.Child{Desired: budget, Current: s.budget})
	}
	if ingress := desired.Ingress(s.gateway); ingress != nil {
		children = append(children, apply.Child{Desired: ingress, Current: s.ingress})
	}
	return children
}

// deleteUnwanted deletes the children that an earlier spec asked for.
func (r *Reconciler) deleteUnwanted(ctx context.Context, s *scope) error {
	var errs []error
	for _, child := range []struct {
		object client.Object
		wanted bool
	}{
		{s.autoscaler, desired.HorizontalPodAutoscaler(s.gateway) != nil},
		{s.budget, desired.PodDisruptionBudget(s.gateway) != nil},
		{s.ingress, desired.Ingress(s.gateway) != nil},
	} {
		if !child.wanted {
			errs = append(errs, r.applier.Delete(ctx, s.gateway, child.object))
		}
	}
	return errors.Join(errs...)
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
		made, err := r.applier.Create(ctx, s.gateway, child())
		if err != nil || made {
			return err
		}
		// The cache does not show it, and what its pods have decides about what is stated. Such a
		// cache may lack the last edit of the APIGateway, too.
		r.fresh.Invalidate(s.gateway)
	}
	_, err = r.applier.Apply(ctx, s.gateway, child())
	return err
}

// statedReplicas returns the number of pods to ask for, or nil when an autoscaler
// owns it.
func (r *Reconciler) statedReplicas(ctx context.Context, s *scope) (*int32, error) {
	minimum := desired.MinReplicas(s.gateway)
	if s.gateway.Spec.Autoscaling == nil {
		return &minimum, nil
	}
	return r.applier.AutoscaledReplicas(ctx, s.gateway, s.deployment, minimum, func(replicas int32) apply.Configuration {
		return desired.Replicas(s.gateway, replicas)
	})
}
