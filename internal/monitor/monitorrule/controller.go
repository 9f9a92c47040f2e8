package monitorrule

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

const (
	// Kind is what this is the controller of.
	Kind = "MonitorRule"
	// FieldManager owns the fields that this controller states.
	FieldManager = "slipway-monitorrule"
)

// kindsRecheck is when to look again whether the monitor has heard of a kind.
const kindsRecheck = 10 * time.Second

var _ reconcile.Reconciler = (*Reconciler)(nil)

// Reconciler tells the engine of rules, and says in their status how they do.
type Reconciler struct {
	// kit is what it has in common with the reconcilers of other kinds.
	kit *kit.Tools
	// engine evaluates the rules.
	engine Engine
}

// The monitor's rights. They are in config/monitor/rbac.yaml, and a test compares the two.
//
// +kubebuilder:rbac:groups=slipway.dev,resources=monitorrules,verbs=get;list;watch
// +kubebuilder:rbac:groups=slipway.dev,resources=monitorrules/status,verbs=get;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile tells of one rule, and says how it does.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.load(ctx, req.NamespacedName)
	switch {
	case err != nil:
		return r.kit.Abort(req.NamespacedName, err)
	case s == nil:
		r.engine.Remove(req.Name)
		return r.kit.Forget(ctx, req.NamespacedName)
	case !s.rule.DeletionTimestamp.IsZero():
		r.engine.Remove(req.Name)
		return r.kit.Conclude(ctx, req.NamespacedName, nil, &s.recheck, func() error { return nil })
	}
	s.problems = r.engine.Put(s.rule)
	s.unknown = r.engine.UnknownWebhooks(webhooks(s.rule))
	if s.unknownKinds, err = r.engine.UnknownKinds(ctx, s.rule.Spec.Kinds); err != nil || len(s.unknownKinds) > 0 {
		// What the monitor follows is no object that could be watched. While the store cannot be read, the rest is said all the same.
		s.recheck.After(kindsRecheck)
	}
	s.seen = r.engine.Status(s.rule.UID)
	return r.kit.Conclude(ctx, req.NamespacedName, nil, &s.recheck, func() error {
		return r.writeStatus(ctx, s, s.status(r.kit.Clock.Now()))
	})
}

// writeStatus writes a status when it differs.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, next slipwayv1alpha1.MonitorRuleStatus) error {
	_, _, err := status.Update(ctx, r.kit.Statuses, s.rule, &s.rule.Status, next, withDetails, &s.recheck)
	return err
}

// withDetails returns a status with the numbers and words of another one.
func withDetails(of, from slipwayv1alpha1.MonitorRuleStatus) slipwayv1alpha1.MonitorRuleStatus {
	of.Firing, of.Objects, of.LastFired = from.Firing, from.Objects, from.LastFired
	of.Conditions = status.WithMessagesOf(from.Conditions, of.Conditions)
	return of
}
