package webapp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-dev/slipway/internal/apply"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/webapp/desired"
)

// revisionHistory is how many good revisions are kept.
const revisionHistory = 5

// chooseRevision decides what runs: what the spec asks for, unless its rollout
// failed or the configuration it needs is missing. Then the last good revision goes
// on, or nothing is started.
func (s *scope) chooseRevision(names *names) error {
	name, err := names.of(s)
	if err != nil {
		return err
	}
	s.specIntent = name.specIntent
	if s.config.missing != nil {
		if good := s.lastGood(); good != nil {
			s.target = good.namedRevision
		}
		return nil
	}
	s.intent = name.intent
	s.wanted = namedRevision{name: name.revision, Revision: desired.RevisionOf(s.app.Spec, s.config.hash)}
	s.target = s.wanted
	if good := s.lastGood(); good != nil && s.rolledBack() {
		s.target = good.namedRevision
	}
	return nil
}

// undecided tells that this pass could not find out what the user asks for. What was
// decided before stands.
func (s *scope) undecided() bool { return s.specIntent == "" }

// rolledBack tells that the rollout of what the user asks for failed and was undone.
func (s *scope) rolledBack() bool {
	rollback := s.app.Status.Rollback
	switch {
	case rollback == nil:
		return false
	case s.config.missing != nil:
		return rollback.Spec == s.specIntent
	default:
		return rollback.Intent == s.intent
	}
}

// isGood tells that a revision is the one that was last completely rolled out.
func (s *scope) isGood(revision namedRevision) bool {
	good := s.lastGood()
	return good != nil && good.name == revision.name
}

// keepRevisions restores the revisions there are, records the wanted
// revision once it is completely rolled out, and forgets the oldest beyond the history.
func (r *Reconciler) keepRevisions(ctx context.Context, s *scope) error {
	if s.app.Spec.Paused {
		return nil
	}
	if err := r.restoreRevisions(ctx, s); err != nil {
		return err
	}
	if s.rollout.proven && s.wanted.name != "" && s.target.name == s.wanted.name && !s.isGood(s.wanted) {
		if err := r.recordRevision(ctx, s); err != nil {
			return err
		}
	}
	for len(s.revisions) > revisionHistory {
		if err := r.applier.Delete(ctx, s.app, s.revisions[0].object); err != nil {
			return err
		}
		s.revisions = s.revisions[1:]
	}
	return nil
}

// restoreRevisions undoes what somebody did to the revisions, and makes the application
// own them: those of an orphaned application have no owner, and would outlive this one
// too, so that a later application of the name, which has nothing to do with either,
// would be rolled back to them. Their order is theirs: nothing else knows it.
func (r *Reconciler) restoreRevisions(ctx context.Context, s *scope) error {
	for _, stored := range s.revisions {
		if err := r.applyRevision(ctx, s, stored, stored.object.Data.Raw); err != nil {
			return err
		}
	}
	return nil
}

// recordRevision makes the wanted revision the last good one. A revision that was
// good before gets a new number.
func (r *Reconciler) recordRevision(ctx context.Context, s *scope) error {
	data, err := json.Marshal(s.wanted.Revision)
	if err != nil {
		return fmt.Errorf("encode revision %q: %w", s.wanted.name, err)
	}
	stored := storedRevision{namedRevision: s.wanted, number: 1, object: &appsv1.ControllerRevision{}}
	if good := s.lastGood(); good != nil {
		stored.number = good.number + 1
	}
	for _, revision := range s.revisions {
		if revision.name == s.wanted.name {
			// Another spelling of the same template; what is stored cannot be changed.
			stored.Revision, stored.object, data = revision.Revision, revision.object, revision.object.Data.Raw
		}
	}
	if err := r.applyRevision(ctx, s, stored, data); err != nil {
		return err
	}
	s.revisions = slices.DeleteFunc(s.revisions, func(r storedRevision) bool { return r.name == stored.name })
	s.revisions = append(s.revisions, stored)
	return nil
}

func (r *Reconciler) applyRevision(ctx context.Context, s *scope, stored storedRevision, data []byte) error {
	configuration := desired.ControllerRevision(s.app, stored.name, data, stored.number)
	if _, err := r.applier.Apply(ctx, s.app, apply.Child{Desired: configuration, Current: stored.object}); err != nil {
		return fmt.Errorf("keep revision %q: %w", stored.name, err)
	}
	return nil
}

// podsOfCurrentTemplate returns the pods of the Deployment's current template, and tells whether the
// Deployment's controller has made a ReplicaSet of that template yet.
func (s *scope) podsOfCurrentTemplate() ([]corev1.Pod, bool) {
	hash := s.currentTemplateHash()
	if hash == "" {
		return nil, false
	}
	var pods []corev1.Pod
	for i := range s.pods {
		if s.pods[i].Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash {
			pods = append(pods, s.pods[i])
		}
	}
	return pods, true
}

// currentTemplateHash finds the ReplicaSet of the Deployment's current template by
// the revision that the Deployment's controller has put on both.
func (s *scope) currentTemplateHash() string {
	if s.deployment.UID == "" || s.deployment.Status.ObservedGeneration < s.deployment.Generation {
		return ""
	}
	revision := s.deployment.Annotations[health.AnnotationRevision]
	for _, replicaSet := range s.replicaSets {
		if revision != "" && replicaSet.Annotations[health.AnnotationRevision] == revision {
			return replicaSet.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		}
	}
	return ""
}
