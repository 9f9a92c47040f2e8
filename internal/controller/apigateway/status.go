package apigateway

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// status computes the whole status from the scope.
func (s *scope) status(now time.Time) slipwayv1alpha1.APIGatewayStatus {
	gateway := s.gateway
	deployed := s.deployment.Status
	next := slipwayv1alpha1.APIGatewayStatus{
		ObservedGeneration: gateway.Generation,
		Replicas:           deployed.Replicas,
		ReadyReplicas:      deployed.ReadyReplicas,
		Selector:           labels.Set(desired.Selector(gateway)).String(),
		Addresses:          s.addresses(),
		Routes:             s.routes(),
	}
	if s.service.UID != "" { // else it is somebody else's, or there is none
		next.ServiceURL = desired.ServiceURL(gateway)
	}
	ready := s.ready(next.Routes)
	next.Summary = slipwayv1alpha1.APIGatewaySummary{
		Routes:   fmt.Sprintf("%d/%d", next.Routes.Live, next.Routes.Total),
		Replicas: fmt.Sprintf("%d/%d", deployed.ReadyReplicas, s.workload().ReplicasAsked()),
		Address:  next.ServiceURL,
	}
	if len(next.Addresses) > 0 {
		next.Summary.Address = next.Addresses[0]
	}
	if ready.Status != metav1.ConditionTrue {
		next.Summary.Reason = ready.Reason
	}
	conditions := []metav1.Condition{
		ready, s.accepted(), s.resolvedRefs(), s.programmed(),
		status.Available(s.workload(), s.notReady()), s.progressing(), status.Degraded(s.trouble(next.Routes)),
	}
	conditions = append(conditions, s.stalled()...)
	conditions = append(conditions, s.pullSecrets.Condition(slipwayv1alpha1.ConditionPullSecretMissing)...)
	next.Conditions = status.Merge(gateway.Status.Conditions, conditions, gateway.Generation, metav1.NewTime(now))
	return next
}

// terminatingStatus is the status of a gateway that is being deleted: as it was, but for
// what still runs.
func (s *scope) terminatingStatus(now time.Time) slipwayv1alpha1.APIGatewayStatus {
	next := *s.gateway.Status.DeepCopy()
	deployed := s.deployment.Status
	next.ObservedGeneration, next.Replicas, next.ReadyReplicas = s.gateway.Generation, deployed.Replicas, deployed.ReadyReplicas
	next.Summary.Replicas = fmt.Sprintf("%d/%d", deployed.ReadyReplicas, s.workload().ReplicasAsked())
	next.Summary.Reason = slipwayv1alpha1.ReasonTerminating
	conditions := status.Terminating(desired.Kind, s.gateway, deployed.ReadyReplicas > 0)
	going := conditions[0].Message
	seen := s.generationOfSpec()
	for _, conditionType := range []string{slipwayv1alpha1.ConditionAccepted, slipwayv1alpha1.ConditionResolvedRefs} {
		if reported := meta.FindStatusCondition(s.gateway.Status.Conditions,
			conditionType); reported != nil && reported.ObservedGeneration >= seen {
			conditions = append(conditions, *reported)
			continue
		}
		conditions = append(conditions, metav1.Condition{
			Type: conditionType, Status: metav1.ConditionUnknown, Reason: slipwayv1alpha1.ReasonTerminating, Message: going,
		})
	}
	conditions = append(conditions, status.False(slipwayv1alpha1.ConditionProgrammed, slipwayv1alpha1.ReasonTerminating, going))
	next.Conditions = status.Merge(s.gateway.Status.Conditions, conditions, s.gateway.Generation, metav1.NewTime(now))
	return next
}

// generationOfSpec is the first generation of a gateway that is being deleted with the spec that
// it has. The API server counts the deletion as an edit. A status that tells of the deletion is
// younger than that, so what changed since is the spec.
func (s *scope) generationOfSpec() int64 {
	ready := meta.FindStatusCondition(s.gateway.Status.Conditions, slipwayv1alpha1.ConditionReady)
	if ready != nil && ready.Reason == slipwayv1alpha1.ReasonTerminating {
		return s.gateway.Generation
	}
	return s.gateway.Generation - 1
}

// maxAddresses is how many status holds.
const maxAddresses = 64

// addresses are where the gateway is reached from outside the cluster, as far as what
// exposes it says.
func (s *scope) addresses() []string {
	var list []string
	add := func(address string) {
		if address != "" && len(list) < maxAddresses && !slices.Contains(list, address) {
			list = append(list, address)
		}
	}
	switch desired.ExposeType(s.gateway) {
	case slipwayv1alpha1.ExposeIngress:
		for _, at := range s.ingress.Status.LoadBalancer.Ingress {
			add(cmp.Or(at.IP, at.Hostname))
		}
	case slipwayv1alpha1.ExposeLoadBalancer:
		if s.service.Spec.Type != corev1.ServiceTypeLoadBalancer {
			break
		}
		for _, at := range s.service.Status.LoadBalancer.Ingress {
			add(cmp.Or(at.IP, at.Hostname))
		}
	case slipwayv1alpha1.ExposeHTTPRoute:
		if takes, _ := s.parentTakes(); !takes {
			break
		}
		for _, at := range s.parent.Status.Addresses {
			add(at.Value)
		}
	case slipwayv1alpha1.ExposeNodePort, slipwayv1alpha1.ExposeClusterIP:
	}
	return list
}
