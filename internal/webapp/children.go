package webapp

import (
	"context"
	"errors"

	"github.com/slipway-dev/slipway/internal/apply"
	"github.com/slipway-dev/slipway/internal/webapp/desired"
)

// applyChildren makes the children true. They do not depend on each other: one that
// fails does not keep the others from being made.
func (r *Reconciler) applyChildren(ctx context.Context, s *scope) error {
	if s.app.Spec.Paused {
		var err error
		s.drifted, err = r.deploymentDrifted(s)
		return err
	}
	return errors.Join(
		r.applyClaim(ctx, s),
		r.applyService(ctx, s),
		// Before the Deployment: an autoscaler that is no longer wanted must not change a
		// number that is stated again.
		r.deleteUnwanted(ctx, s),
		r.applyDeployment(ctx, s),
		r.applyAutoscaler(ctx, s),
		r.applyBudget(ctx, s),
	)
}

func (r *Reconciler) applyClaim(ctx context.Context, s *scope) error {
	claim := desired.PersistentVolumeClaim(s.app)
	if claim == nil {
		return nil
	}
	_, err := r.applier.Apply(ctx, s.app, apply.Child{Desired: claim, Current: s.claim})
	return err
}

func (r *Reconciler) applyService(ctx context.Context, s *scope) error {
	_, err := r.applier.Apply(ctx, s.app, apply.Child{Desired: desired.Service(s.app), Current: s.service})
	return err
}

func (r *Reconciler) applyAutoscaler(ctx context.Context, s *scope) error {
	autoscaler := desired.HorizontalPodAutoscaler(s.app)
	if autoscaler == nil {
		return nil
	}
	_, err := r.applier.Apply(ctx, s.app, apply.Child{Desired: autoscaler, Current: s.autoscaler})
	return err
}

func (r *Reconciler) applyBudget(ctx context.Context, s *scope) error {
	budget := desired.PodDisruptionBudget(s.app)
	if budget == nil {
		return nil
	}
	_, err := r.applier.Apply(ctx, s.app, apply.Child{Desired: budget, Current: s.budget})
	return err
}

// deleteUnwanted deletes what an earlier spec asked for. A volume is never deleted
// because of an edit.
func (r *Reconciler) deleteUnwanted(ctx context.Context, s *scope) error {
	var err error
	if desired.HorizontalPodAutoscaler(s.app) == nil {
		err = r.applier.Delete(ctx, s.app, s.autoscaler)
	}
	if desired.PodDisruptionBudget(s.app) == nil {
		err = errors.Join(err, r.applier.Delete(ctx, s.app, s.budget))
	}
	return err
}

func (r *Reconciler) applyDeployment(ctx context.Context, s *scope) error {
	if s.target.name == "" {
		// Its configuration is missing and there is no earlier revision to run.
		return nil
	}
	replicas, err := r.statedReplicas(ctx, s)
	if err != nil {
		return err
	}
	_, err = r.applier.Apply(ctx, s.app, apply.Child{
		Desired: desired.Deployment(s.deploymentInputs(replicas)),
		Current: s.deployment,
	})
	return err
}

func (s *scope) deploymentInputs(replicas *int32) desired.Inputs {
	versions := s.config.versions
	if s.config.missing != nil {
		versions = s.deployment.Annotations[desired.AnnotationConfigVersions]
	}
	return desired.Inputs{App: s.app, Revision: s.target.Revision, Replicas: replicas, ConfigVersions: versions}
}

// statedReplicas returns the number of pods to ask for, or nil when an autoscaler
// owns it. On the way from one to the other the number never falls back to 1, the
// default of a field without owner: it is handed to a second field manager before
// this one lets go of it.
func (r *Reconciler) statedReplicas(ctx context.Context, s *scope) (*int32, error) {
	minimum := desired.MinReplicas(s.app)
	if s.app.Spec.Autoscaling == nil {
		return &minimum, nil
	}
	if s.deployment.UID == "" {
		// Its number of pods counts, even where the cache does not show it.
		if _, err := r.applier.Look(ctx, s.app, apply.Child{Desired: desired.Replicas(s.app, minimum), Current: s.deployment}); err != nil {
			return nil, err
		}
	}
	live := s.deployment.Spec.Replicas
	if live == nil {
		// An autoscaled application starts with its lower bound, not with one pod.
		return &minimum, nil
	}
	ours, err := r.applier.Owns(s.deployment, "spec", "replicas")
	switch {
	case err != nil:
		return nil, err
	case !ours:
		return nil, nil
	case *live < minimum:
		// An autoscaler leaves a Deployment without pods alone, so it gets its lower bound first.
		return &minimum, nil
	default:
		return nil, r.applier.HandOver(ctx, desired.Replicas(s.app, *live))
	}
}

// deploymentDrifted tells whether a paused application's Deployment is not what it
// would be if it were not paused.
func (r *Reconciler) deploymentDrifted(s *scope) (bool, error) {
	if s.deployment.UID == "" || s.target.name == "" {
		return true, nil
	}
	var replicas *int32
	if s.app.Spec.Autoscaling == nil {
		minimum := desired.MinReplicas(s.app)
		replicas = &minimum
	}
	return r.applier.Drifted(desired.Deployment(s.deploymentInputs(replicas)), s.deployment)
}
