package apigateway

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// trouble returns what is wrong, the most important thing first, or nil.
func (s *scope) trouble(routes slipwayv1alpha1.RoutesStatus) *trouble {
	if e := outcome.Worst(s.err); e != nil {
		return &trouble{e.Reason, e.Message}
	}
	if s.served.stale != nil {
		return s.served.stale
	}
	if s.rollout.trouble != nil {
		return s.rollout.trouble
	}
	if s.served.behind != nil {
		return s.served.behind
	}
	if t := s.notAccepted(); t != nil {
		return t
	}
	if t := s.notExposed(); t != nil {
		return t
	}
	if len(s.served.general) > 0 {
		return &trouble{s.served.general[0].reason, s.served.general[0].message}
	}
	// Without a pod that is ready no route is live, which is no news of the routes.
	if len(routes.NotLive) > 0 && s.served.ready > 0 {
		first := routes.NotLive[0]
		return &trouble{slipwayv1alpha1.ReasonRoutesNotLive, routeMessage(first.Name, first.Message)}
	}
	return s.rollout.autoscaling
}

func routeMessage(name, message string) string { return fmt.Sprintf("route %q: %s", name, message) }

// ready is the summary: does every replica serve what this spec says?
func (s *scope) ready(routes slipwayv1alpha1.RoutesStatus) metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return status.False(slipwayv1alpha1.ConditionReady, reason, message)
	}
	if t := s.trouble(routes); t != nil {
		return no(t.reason, t.message)
	}
	switch {
	case s.runsAsAsked() && desired.MinReplicas(s.gateway) == 0 && s.served.ready == 0:
		return status.True(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonScaledToZero, "nothing runs, as spec.replicas says")
	case s.runsAsAsked() && s.served.current > 0:
		return status.True(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonReady, "every replica serves every route")
	case s.rolling():
		return no(slipwayv1alpha1.ReasonRolloutInProgress, s.rolloutMessage())
	case s.runsAsAsked():
		return no(slipwayv1alpha1.ReasonReplicaBehind, "no replica has said yet what it serves")
	default:
		missing := s.notReady()
		return no(missing.reason, missing.message)
	}
}

// notAccepted is the first thing wrong with the routes as they are written, or nil.
func (s *scope) notAccepted() *trouble {
	for i := range s.gateway.Spec.Routes {
		if p := s.problemOf(i); p != nil && ofSpec(p.reason) {
			return &trouble{p.reason, routeMessage(s.check.names[i], p.message)}
		}
	}
	return nil
}

func (s *scope) accepted() metav1.Condition {
	if t := s.notAccepted(); t != nil {
		return status.False(slipwayv1alpha1.ConditionAccepted, t.reason, t.message)
	}
	return status.True(slipwayv1alpha1.ConditionAccepted, slipwayv1alpha1.ReasonAccepted, "every route can be served as written")
}

// ofReferences tells the reasons that are about what the spec names.
func ofReferences(reason string) bool {
	switch reason {
	case slipwayv1alpha1.ReasonBackendNotFound, slipwayv1alpha1.ReasonPortNotFound, slipwayv1alpha1.ReasonUnsupportedProtocol, slipwayv1alpha1.ReasonUnsupportedService,
		slipwayv1alpha1.ReasonSecretNotFound, slipwayv1alpha1.ReasonKeyNotFound, slipwayv1alpha1.ReasonInvalidSecret,
		slipwayv1alpha1.ReasonInvalidCertificate, slipwayv1alpha1.ReasonCertificateExpired, slipwayv1alpha1.ReasonCertificateMismatch,
		slipwayv1alpha1.ReasonKeysNotFetched:
		return true
	default:
		return false
	}
}

// resolvedRefs is known from the pods: the operator does not watch other people's
// Services.
func (s *scope) resolvedRefs() metav1.Condition {
	for _, p := range s.served.general {
		if ofReferences(p.reason) {
			return status.False(slipwayv1alpha1.ConditionResolvedRefs, p.reason, p.message)
		}
	}
	for i := range s.gateway.Spec.Routes {
		if p, ok := s.served.problems[i]; ok && ofReferences(p.reason) {
			return status.False(slipwayv1alpha1.ConditionResolvedRefs, p.reason, routeMessage(s.check.names[i], p.message))
		}
	}
	if s.served.current > 0 {
		return status.True(slipwayv1alpha1.ConditionResolvedRefs, slipwayv1alpha1.ReasonResolvedRefs, "everything that the spec names exists")
	}
	unknown := s.whyUnknown()
	return metav1.Condition{
		Type: slipwayv1alpha1.ConditionResolvedRefs, Status: metav1.ConditionUnknown,
		Reason: unknown.reason, Message: "only a replica that serves this spec can tell: " + unknown.message,
	}
}

// whyUnknown says why no replica serves this generation.
func (s *scope) whyUnknown() trouble {
	switch {
	case s.served.behind != nil:
		return *s.served.behind
	case s.deployment.Status.ReadyReplicas > 0:
		return trouble{slipwayv1alpha1.ReasonReplicaBehind, "no replica has said yet what it serves"}
	default:
		return s.notReady()
	}
}

func (s *scope) programmed() metav1.Condition {
	if s.served.behind == nil && s.served.current > 0 {
		return status.True(slipwayv1alpha1.ConditionProgrammed, slipwayv1alpha1.ReasonProgrammed, "every ready replica serves this generation of the spec")
	}
	unknown := s.whyUnknown()
	return status.False(slipwayv1alpha1.ConditionProgrammed, unknown.reason, unknown.message)
}

func (s *scope) available() metav1.Condition {
	if s.deployment.Status.ReadyReplicas > 0 {
		return status.True(slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ReasonReplicasReady, "at least one replica serves")
	}
	missing := s.notReady()
	if desired.MinReplicas(s.gateway) > 0 {
		missing.reason = slipwayv1alpha1.ReasonReplicasNotReady
	}
	return status.False(slipwayv1alpha1.ConditionAvailable, missing.reason, missing.message)
}

func (s *scope) progressing() metav1.Condition {
	worst := outcome.Worst(s.err)
	switch {
	case worst.Stalls():
		return status.False(slipwayv1alpha1.ConditionProgressing, worst.Reason, worst.Message)
	case worst != nil:
		return status.True(slipwayv1alpha1.ConditionProgressing, worst.Reason, worst.Message)
	case s.rollout.deadlineExceeded:
		return status.False(slipwayv1alpha1.ConditionProgressing, s.rollout.trouble.reason, s.rollout.trouble.message)
	case s.rolling():
		return status.True(slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ReasonRolloutInProgress, s.rolloutMessage())
	case s.served.behind != nil && s.served.behind.reason == slipwayv1alpha1.ReasonReplicaBehind:
		return status.True(slipwayv1alpha1.ConditionProgressing, s.served.behind.reason, s.served.behind.message)
	case s.rollout.trouble == nil && !s.runsAsAsked():
		// Pods of the current template are being started, for the first time or in place of others.
		starting := s.notReady()
		return status.True(slipwayv1alpha1.ConditionProgressing, starting.reason, starting.message)
	default:
		return status.False(slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ReasonRolloutComplete, "every pod is of the current template")
	}
}

func (s *scope) degraded(routes slipwayv1alpha1.RoutesStatus) metav1.Condition {
	if t := s.trouble(routes); t != nil {
		return status.True(slipwayv1alpha1.ConditionDegraded, t.reason, t.message)
	}
	return status.False(slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ReasonAsExpected, "nothing is wrong")
}

// stalled exists only while nothing gets better until a user acts: what was refused, a
// route that cannot be served as written, an image that the operator does not
// understand, and a rollout that gets nowhere.
func (s *scope) stalled() []metav1.Condition {
	is := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{status.True(slipwayv1alpha1.ConditionStalled, reason, message)}
	}
	worst := outcome.Worst(s.err)
	accepted := s.notAccepted()
	switch {
	case worst.Stalls():
		return is(worst.Reason, worst.Message)
	case worst != nil:
		return nil
	case s.rollout.deadlineExceeded, s.rollout.incompatible:
		return is(s.rollout.trouble.reason, s.rollout.trouble.message)
	case s.served.behind != nil && s.served.behind.reason == slipwayv1alpha1.ReasonImageIncompatible:
		return is(s.served.behind.reason, s.served.behind.message)
	case accepted != nil:
		return is(accepted.reason, accepted.message)
	default:
		return nil
	}
}
