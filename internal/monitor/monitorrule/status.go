package monitorrule

import (
	"fmt"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
	"github.com/slipway-dev/slipway/internal/text"
)

// These are the bounds of the schema.
const (
	maxNamespace = 63
	maxText      = 253
	maxMessage   = 1024
)

// status computes the whole status from the scope.
func (s *scope) status(now time.Time) slipwayv1alpha1.MonitorRuleStatus {
	before := &s.rule.Status
	next := slipwayv1alpha1.MonitorRuleStatus{
		ObservedGeneration: s.rule.Generation,
		Firing:             int32(min(s.seen.Firing, math.MaxInt32)),
		LastFired:          lastFired(before.LastFired, s.seen.LastFired),
	}
	for i := range s.seen.Objects {
		next.Objects = append(next.Objects, firing(&s.seen.Objects[i]))
	}
	next.Conditions = status.Merge(before.Conditions, s.conditions(), s.rule.Generation, metav1.NewTime(now))
	return next
}

// lastFired is the later of what the status has, which outlives a restart, and what was seen. Its seconds are those of the API.
func lastFired(before *metav1.Time, seen time.Time) *metav1.Time {
	seen = seen.Truncate(time.Second)
	if seen.IsZero() || before != nil && !seen.After(before.Time) {
		return before
	}
	return &metav1.Time{Time: seen}
}

func firing(from *rule.Standing) slipwayv1alpha1.FiringObject {
	o := &from.Object
	return slipwayv1alpha1.FiringObject{
		Group: text.Cut(o.Group, maxText), Kind: text.Cut(o.Kind, maxNamespace), Namespace: text.Cut(o.Namespace, maxNamespace),
		Name: text.Cut(o.Name, maxText), Since: metav1.NewTime(from.Since.Truncate(time.Second)), Message: rule.Text(from.Message),
	}
}

// conditions are Ready, and what is wrong.
func (s *scope) conditions() []metav1.Condition {
	var conditions []metav1.Condition
	stalled := func(reason, message string) {
		conditions = []metav1.Condition{
			status.False(slipwayv1alpha1.ConditionReady, reason, message), status.True(slipwayv1alpha1.ConditionStalled, reason, message),
		}
	}
	switch {
	case len(s.problems) > 0:
		stalled(slipwayv1alpha1.ReasonExpressionInvalid, rule.Sentence(s.problems))
		return conditions
	case len(s.unknown) > 0:
		stalled(slipwayv1alpha1.ReasonUnknownWebhook, fmt.Sprintf(
			"spec.outputs.webhooks: the monitor has no webhook called %s: the others are told", strings.Join(s.unknown, ", ")))
	case s.rule.Spec.Suspend:
		return []metav1.Condition{status.False(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonSuspended, "spec.suspend is true")}
	case !s.seen.Reviewed:
		conditions = []metav1.Condition{status.False(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonReviewing,
			"the monitor has not looked at all objects yet")}
	case s.seen.Failing > 0:
		conditions = []metav1.Condition{status.False(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonExpressionFailed, s.failure())}
	case len(s.unknownKinds) > 0:
		conditions = []metav1.Condition{status.False(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonKindNotFound,
			text.Cut(fmt.Sprintf(
				"spec.kinds: the monitor watches no kind %s: its definition may not be there, or the monitor may be told to leave it out",
				strings.Join(s.unknownKinds, ", ")), maxMessage))}
	default:
		conditions = []metav1.Condition{status.True(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonEvaluating,
			"the monitor evaluates the rule")}
	}
	if s.seen.Failing > 0 && !s.rule.Spec.Suspend {
		conditions = append(conditions,
			status.True(slipwayv1alpha1.ConditionEvaluationFailed, slipwayv1alpha1.ReasonExpressionFailed, s.failure()))
	}
	return conditions
}

// failure names one of the objects for which an expression fails.
func (s *scope) failure() string {
	o := &s.seen.FailedFor
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return fmt.Sprintf("an expression fails for %s %s: %s", o.Kind, name, s.seen.Failure)
}
