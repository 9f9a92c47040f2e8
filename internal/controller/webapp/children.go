package webapp

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// applyChildren makes the children true. They do not depend on each other: one that
// fails does not keep the others from being made.
func (r *Reconciler) applyChildren(ctx context.Context, s *scope) error {
	if s.app.Spec.Paused {
		return r.findDrift(s)
	}
	return errors.Join(
		r.kit.Applier.All(ctx, s.app, s.childrenBesideDeployment(), r.explain(s)),
		r.applyDeployment(ctx, s),
		r.kit.Applier.All(ctx, s.app, []apply.Child{s.serviceChild()}, r.explain(s)),
	)
}

// explain says of an error of a child which field of the WebApp it is about.
func (r *Reconciler) explain(s *scope) func(apply.Child, error) error {
	return func(child apply.Child, err error) error {
		if child.Current == client.Object(s.claim) && s.claim.UID != "" {
			// What cannot be read is nobody's.
			ours, _ := r.kit.Applier.Owns(s.claim, "spec", "storageClassName")
			err = s.resizeError(s.classError(err, ours))
		}
		return s.inOurWords(*child.Desired.GetKind(), err)
	}
}

// serviceChild is the Service. Its ports depend on how far the rollout has got, so it is
// applied after the Deployment.
func (s *scope) serviceChild() apply.Child {
	serving, next := s.servicePorts()
	return apply.Child{Desired: desired.Service(s.app, serving, next...), Current: s.service}
}

// servicePorts are the port of the revision that serves and, during a rollout, that of the
// next one. The last good revision serves until another is completely rolled out.
func (s *scope) servicePorts() (serving int32, next []int32) {
	good := s.lastGood()
	switch {
	case s.target.name == "" && good == nil:
		return s.app.Spec.Port, nil
	case s.target.name == "":
		return good.Spec.Port, nil
	case good == nil, good.Spec.Port == s.target.Spec.Port, s.applied && health.RolledOut(s.deployment):
		return s.target.Spec.Port, nil
	default:
		return good.Spec.Port, []int32{s.target.Spec.Port}
	}
}

// childrenBesideDeployment are the children whose content depends on nothing but the spec. A
// volume that is not wanted is none of them: it is never deleted because of an edit.
func (s *scope) childrenBesideDeployment() []apply.Child {
	var children []apply.Child
	if claim := desired.PersistentVolumeClaim(s.app); claim != nil {
		children = append(children, apply.Wanted(claim, s.claim))
	}
	autoscaler := desired.HorizontalPodAutoscaler(s.app)
	if s.targetHasVolume() {
		// A revision with a volume runs one pod, whatever a later spec says.
		autoscaler = nil
	}
	return append(children, apply.Wanted(autoscaler, s.autoscaler), apply.Wanted(desired.PodDisruptionBudget(s.app), s.budget))
}

// targetHasVolume reports whether what is to run has a volume, which only one pod may write
// to. The spec may have none any more, when an earlier revision goes on running.
func (s *scope) targetHasVolume() bool { return s.target.Spec.Storage != nil }

// minReplicas is the number of pods to run at the least.
func (s *scope) minReplicas() int32 {
	if s.targetHasVolume() {
		return min(desired.MinReplicas(s.app), 1)
	}
	return desired.MinReplicas(s.app)
}

// autoscaled reports whether an autoscaler owns the number of pods.
func (s *scope) autoscaled() bool { return s.app.Spec.Autoscaling != nil && !s.targetHasVolume() }

func (r *Reconciler) applyDeployment(ctx context.Context, s *scope) error {
	if s.target.name == "" {
		// Its configuration is missing and there is no earlier revision to run.
		return nil
	}
	replicas, err := r.statedReplicas(ctx, s)
	if err != nil {
		return err
	}
	draft := r.storeDraft(ctx, s)
	if worst := outcome.Worst(draft); draft != nil && (worst == nil || worst.Kind == outcome.Transient) {
		return draft
	}
	// What does not go away by itself, such as an object of that name which is not ours, keeps
	// nothing from running.
	change, err := r.kit.Applier.Apply(ctx, s.app, s.deploymentChild(replicas))
	r.reportRefused(s, change)
	// What the cluster makes of it is reported, and its pods are judged like others: they may fail, too.
	s.applied = err == nil || outcome.Only(err, slipwayv1alpha1.ReasonAltered)
	return errors.Join(s.inOurWords("Deployment", err), draft)
}

func (s *scope) deploymentChild(replicas *int32) apply.Child {
	versions := s.config.versions
	if s.config.missing != nil {
		versions = s.deployment.Annotations[desired.AnnotationConfigVersions]
	}
	in := desired.Inputs{App: s.app, Revision: s.target.Revision, Template: s.template, Replicas: replicas, ConfigVersions: versions}
	return apply.Child{Desired: desired.Deployment(in), Current: s.deployment}
}

// statedReplicas returns the number of pods to ask for, or nil when an autoscaler
// owns it.
func (r *Reconciler) statedReplicas(ctx context.Context, s *scope) (*int32, error) {
	minimum := s.minReplicas()
	if !s.autoscaled() {
		return &minimum, nil
	}
	return r.kit.Applier.AutoscaledReplicas(ctx, s.app, s.deployment, minimum, func(replicas int32) apply.Configuration {
		return desired.Replicas(s.app, replicas)
	})
}

// findDrift tells what would be done to a paused application, and does nothing.
func (r *Reconciler) findDrift(s *scope) error {
	if s.target.name == "" {
		s.drifted = true
		return nil
	}
	var replicas *int32
	if !s.autoscaled() {
		minimum := s.minReplicas()
		replicas = &minimum
	}
	drifted, err := r.kit.Applier.AnyDrifted(s.deploymentChild(replicas))
	if err != nil {
		return err
	}
	s.applied = !drifted
	others, err := r.kit.Applier.AnyDrifted(append(s.childrenBesideDeployment(), s.serviceChild())...)
	s.drifted = drifted || others
	return err
}
