package webapp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// revisionHistory is how many good revisions are kept.
const revisionHistory = 5

// chooseRevision decides what runs: what the spec asks for, unless its rollout
// failed or the configuration it needs is missing. Then the last good revision goes
// on, or nothing is started.
func (s *scope) chooseRevision(names *names) error {
	if problem := children.EnvProblem(s.app.Spec.Env, s.app.Spec.EnvFrom); problem != "" {
		return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.env: %s", problem)
	}
	name, err := names.nameFor(s)
	if err != nil {
		return err
	}
	s.specIntent = name.specIntent
	if s.config.missing != nil {
		if good := s.lastGood(); good != nil {
			s.target = good.namedRevision
		}
		return s.chooseTemplate(names)
	}
	s.intent = name.intent
	if s.wanted, err = s.findWanted(names, name.revision); err != nil {
		return err
	}
	s.target = s.wanted
	if good := s.lastGood(); good != nil && s.rolledBack() {
		s.target = good.namedRevision
	}
	return s.chooseTemplate(names)
}

// undecided reports whether this reconcile could not find out what the user asks for. What was
// decided before stands.
func (s *scope) undecided() bool { return s.specIntent == "" }

// rolledBack reports whether the rollout of what the user asks for failed and was undone.
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

// isGood reports whether a revision is the one that was last completely rolled out and has proven itself.
func (s *scope) isGood(revision namedRevision) bool {
	good := s.lastGood()
	return good != nil && good.name == revision.name
}

// keepRevisions restores the revisions there are, records the wanted
// revision once it has proven itself, and forgets the oldest beyond the history.
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
		if err := r.kit.Applier.Delete(ctx, s.app, s.revisions[0].object); err != nil {
			return err
		}
		s.revisions = s.revisions[1:]
	}
	return r.deleteDrafts(ctx, s)
}

// deleteDrafts forgets what was applied and is not asked for any more. While nobody can
// tell what is asked for, it may be any.
func (r *Reconciler) deleteDrafts(ctx context.Context, s *scope) error {
	if s.wanted.name == "" {
		return nil
	}
	for _, draft := range s.drafts {
		if draft.name == s.wanted.name {
			continue
		}
		if err := r.kit.Applier.Delete(ctx, s.app, draft.object); err != nil {
			return err
		}
	}
	return nil
}

// storeDraft stores the target before it is applied for the first time, so that what was
// applied is known whatever happens, and whichever release of the operator comes next.
func (r *Reconciler) storeDraft(ctx context.Context, s *scope) error {
	for _, stored := range slices.Concat(s.revisions, s.drafts) {
		if stored.name == s.target.name {
			return nil
		}
	}
	data, err := json.Marshal(s.target.Revision)
	if err != nil {
		return fmt.Errorf("encode revision %q: %w", s.target.name, err)
	}
	draft := storedRevision{namedRevision: s.target, number: desired.DraftNumber, object: &appsv1.ControllerRevision{}}
	child := apply.Child{Desired: desired.ControllerRevision(s.app, draft.name, data, draft.number), Current: draft.object}
	made, err := r.kit.Applier.Create(ctx, s.app, child)
	if err != nil {
		return fmt.Errorf("store revision %q: %w", draft.name, err)
	}
	if made {
		s.drafts = append(s.drafts, draft)
		return nil
	}
	// The cache is stale, or somebody has taken our label from it. It may be good: then it
	// stays so.
	draft.number = draft.object.Revision
	if err := r.applyRevision(ctx, s, draft, draft.object.Data.Raw); err != nil {
		return err
	}
	if draft.number == desired.DraftNumber {
		s.drafts = append(s.drafts, draft)
		return nil
	}
	s.revisions = append(s.revisions, draft)
	slices.SortFunc(s.revisions, func(a, b storedRevision) int { return int(a.number - b.number) })
	return nil
}

// restoreRevisions undoes what somebody did to the revisions, and makes the application
// own them: those of an orphaned application have no owner, and would outlive this one
// too, so that a later application of the name, which has nothing to do with either,
// would be rolled back to them. Their order is theirs: nothing else knows it.
func (r *Reconciler) restoreRevisions(ctx context.Context, s *scope) error {
	for _, stored := range slices.Concat(s.revisions, s.drafts) {
		if err := r.applyRevision(ctx, s, stored, stored.object.Data.Raw); err != nil {
			return err
		}
	}
	return nil
}

// recordRevision makes the wanted revision the last good one. A revision that was
// good before gets a new number.
func (r *Reconciler) recordRevision(ctx context.Context, s *scope) error {
	all := slices.Concat(s.revisions, s.drafts)
	at := slices.IndexFunc(all, func(r storedRevision) bool { return r.name == s.wanted.name })
	if at < 0 {
		// The Deployment was not applied in this reconcile: it is the next one's.
		return nil
	}
	stored := all[at]
	stored.number = desired.DraftNumber + 1
	if good := s.lastGood(); good != nil {
		stored.number = good.number + 1
	}
	if err := r.applyRevision(ctx, s, stored, stored.object.Data.Raw); err != nil {
		return err
	}
	isStored := func(r storedRevision) bool { return r.name == stored.name }
	s.drafts = slices.DeleteFunc(s.drafts, isStored)
	s.revisions = append(slices.DeleteFunc(s.revisions, isStored), stored)
	return nil
}

func (r *Reconciler) applyRevision(ctx context.Context, s *scope, stored storedRevision, data []byte) error {
	configuration := desired.ControllerRevision(s.app, stored.name, data, stored.number)
	if _, err := r.kit.Applier.Apply(ctx, s.app, apply.Child{Desired: configuration, Current: stored.object}); err != nil {
		return fmt.Errorf("keep revision %q: %w", stored.name, err)
	}
	return nil
}
