package monitorrule

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
)

// scope is what one reconcile knows.
type scope struct {
	// rule is the MonitorRule as the cache has it. Its status is replaced at the end.
	rule *slipwayv1alpha1.MonitorRule
	// problems are why it is not evaluated, and unknown are webhooks that are not configured.
	problems []rule.Problem
	unknown  []string
	// unknownKinds are kinds of which the monitor knows nothing.
	unknownKinds []string
	// seen is how it does.
	seen rule.Status
	// recheck is when to look again though nothing changes; zero: never.
	recheck outcome.Recheck
}

// load reads the rule from the cache. It returns nil when the rule is gone.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (*scope, error) {
	s := &scope{rule: &slipwayv1alpha1.MonitorRule{}}
	if found, err := r.kit.Get(ctx, key, s.rule); !found || err != nil {
		return nil, err
	}
	return s, nil
}

// webhooks are the names of the webhooks that a rule tells.
func webhooks(m *slipwayv1alpha1.MonitorRule) []string {
	if m.Spec.Outputs == nil {
		return nil
	}
	return m.Spec.Outputs.Webhooks
}
