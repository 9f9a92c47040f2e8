package apigateway

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// trouble returns what is wrong, the most important thing first, or nil.
func (s *scope) trouble(routes slipwayv1alpha1.RoutesStatus) *health.Trouble {
	if e := outcome.Worst(s.err); e != nil {
		return e.Trouble()
	}
	if s.served.stale != nil {
		return s.served.stale
	}
	if s.rollout.Trouble != nil {
		return s.pullSecrets.Explain(s.rollout.Trouble)
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
		return &health.Trouble{Reason: s.served.general[0].Reason, Message: s.served.general[0].Message}
	}
	// Without a pod that is ready no route is live, which is no news of the routes.
	if len(routes.NotLive) > 0 && s.served.ready > 0 {
		first := routes.NotLive[0]
		return &health.Trouble{Reason: slipwayv1alpha1.ReasonRoutesNotLive, Message: routeMessage(first.Name, first.Message)}
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
		return no(t.Reason, t.Message)
	}
	switch {
	case s.workload().Serves() && desired.MinReplicas(s.gateway) == 0 && s.served.ready == 0:
		return status.True(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonScaledToZero, "nothing runs, as spec.replicas says")
	case s.workload().Serves() && s.served.current > 0:
		if t := s.exposureUnknown(); t != nil {
			return no(t.Reason, t.Message)
		}
		return status.True(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonReady, s.readyMessage())
	case s.workload().Rolling():
		return no(slipwayv1alpha1.ReasonRolloutInProgress, s.rolloutMessage())
	case s.workload().Serves():
		return no(slipwayv1alpha1.ReasonReplicaBehind, "no replica has said yet what it serves")
	default:
		missing := s.notReady()
		return no(missing.Reason, missing.Message)
	}
}

func (s *scope) readyMessage() string {
	message := "every replica serves every route"
	if s.parentNotWatched {
		message += fmt.Sprintf("; status has no addresses of Gateway %q: this operator does not work in namespace %q", parentKey(s.gateway),
			parentKey(s.gateway).Namespace)
	}
	if class := s.classWithoutAddress(); class != "" {
		message += fmt.Sprintf(
			"; nothing has given Ingress %q an address: it is for the controller of IngressClass %q (spec.expose.ingressClassName)",
			s.ingress.Name, class,
		)
	}
	return message
}

// notAccepted is the first thing wrong with the routes as they are written, or nil.
func (s *scope) notAccepted() *health.Trouble {
	for i := range s.gateway.Spec.Routes {
		if p := s.problemOf(i); p != nil && ofSpec(p.Reason) {
			return &health.Trouble{Reason: p.Reason, Message: routeMessage(s.check.names[i], p.Message)}
		}
	}
	if len(s.check.streams) > 0 {
		return &s.check.streams[0]
	}
	return nil
}

func (s *scope) accepted() metav1.Condition {
	if t := s.notAccepted(); t != nil {
		return status.False(slipwayv1alpha1.ConditionAccepted, t.Reason, t.Message)
	}
	return status.True(slipwayv1alpha1.ConditionAccepted, slipwayv1alpha1.ReasonAccepted, "every route can be served as written")
}

// ofReferences tells the reasons that are about what the spec names.
func ofReferences(reason string) bool {
	switch reason {
	case slipwayv1alpha1.ReasonBackendNotFound,
		slipwayv1alpha1.ReasonPortNotFound, slipwayv1alpha1.ReasonUnsupportedProtocol, slipwayv1alpha1.ReasonUnsupportedService,
		slipwayv1alpha1.ReasonSecretNotFound, slipwayv1alpha1.ReasonConfigMapNotFound,
		slipwayv1alpha1.ReasonInvalidCACertificates, slipwayv1alpha1.ReasonKeyNotFound, slipwayv1alpha1.ReasonInvalidSecret,
		slipwayv1alpha1.ReasonInvalidCertificate, slipwayv1alpha1.ReasonCertificateExpired, slipwayv1alpha1.ReasonCertificateMismatch,
		slipwayv1alpha1.ReasonKeysNotFetched, slipwayv1alpha1.ReasonProviderNotFetched:
		return true
	default:
		return false
	}
}

// resolvedRefs is known from the pods: the operator does not watch other people's
// Services.
func (s *scope) resolvedRefs() metav1.Condition {
	for _, p := range s.served.general {
		if ofReferences(p.Reason) {
			return status.False(slipwayv1alpha1.ConditionResolvedRefs, p.Reason, p.Message)
		}
	}
	for i := range s.gateway.Spec.Routes {
		if p, ok := s.served.problems[i]; ok && ofReferences(p.Reason) {
			return status.False(slipwayv1alpha1.ConditionResolvedRefs, p.Reason, routeMessage(s.check.names[i], p.Message))
		}
	}
	if missing := s.pullSecrets.Missing(); missing != "" {
		return status.False(slipwayv1alpha1.ConditionResolvedRefs, slipwayv1alpha1.ReasonSecretNotFound, missing)
	}
	if s.served.current > 0 {
		return status.True(slipwayv1alpha1.ConditionResolvedRefs, slipwayv1alpha1.ReasonResolvedRefs,
			"everything that the spec names exists")
	}
	unknown := s.whyUnknown()
	return metav1.Condition{
		Type: slipwayv1alpha1.ConditionResolvedRefs, Status: metav1.ConditionUnknown,
		Reason: unknown.Reason, Message: "only a replica that serves this spec can tell: " + unknown.Message,
	}
}

// whyUnknown says why no replica serves this generation.
func (s *scope) whyUnknown() health.Trouble {
	switch {
	case s.served.behind != nil:
		return *s.served.behind
	case s.deployment.Status.ReadyReplicas > 0:
		return health.Trouble{Reason: slipwayv1alpha1.ReasonReplicaBehind, Message: "no replica has said yet what it serves"}
	default:
		return s.notReady()
	}
}

func (s *scope) programmed() metav1.Condition {
	if s.served.behind == nil && s.served.current > 0 {
		return status.True(slipwayv1alpha1.ConditionProgrammed, slipwayv1alpha1.ReasonProgrammed,
			"every ready replica serves this generation of the spec")
	}
	unknown := s.whyUnknown()
	return status.False(slipwayv1alpha1.ConditionProgrammed, unknown.Reason, unknown.Message)
}

func (s *scope) progressing() metav1.Condition {
	if c, decided := status.ProgressingAfter(outcome.Worst(s.err)); decided {
		return c
	}
	switch {
	case s.rollout.deadlineExceeded:
		return status.False(slipwayv1alpha1.ConditionProgressing, s.rollout.Trouble.Reason, s.rollout.Trouble.Message)
	case s.workload().Rolling():
		return status.True(slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ReasonRolloutInProgress, s.rolloutMessage())
	case s.served.behind != nil && s.served.behind.Reason == slipwayv1alpha1.ReasonReplicaBehind:
		return status.True(slipwayv1alpha1.ConditionProgressing, s.served.behind.Reason, s.served.behind.Message)
	case s.rollout.Trouble == nil && !s.workload().Serves():
		// Pods of the current template are being started, for the first time or in place of others.
		starting := s.notReady()
		return status.True(slipwayv1alpha1.ConditionProgressing, starting.Reason, starting.Message)
	default:
		return status.False(slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ReasonRolloutComplete,
			"every pod is of the current template")
	}
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
		return is(s.rollout.Trouble.Reason, s.rollout.Trouble.Message)
	case s.served.behind != nil && s.served.behind.Reason == slipwayv1alpha1.ReasonImageIncompatible:
		return is(s.served.behind.Reason, s.served.behind.Message)
	case accepted != nil:
		return is(accepted.Reason, accepted.Message)
	default:
		return nil
	}
}
