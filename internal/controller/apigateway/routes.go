package apigateway

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/text"
)

// served is what the pods that are ready serve. Pods that are not get no requests, so
// what they serve does not matter yet.
type served struct {
	// ready is the number of pods that are ready, and current how many of them serve this
	// generation of the spec and hear of every change.
	ready, current int
	// behind is why the first of the others does not; nil when all do.
	behind *health.Trouble
	// late is how many pods do not serve a route as this generation has it, by its index, and
	// lateness is why the first of them does not.
	late     map[int]int
	lateness map[int]health.Trouble
	// stale is the first pod that does not hear the API server, ready or not; nil when all do.
	stale *health.Trouble
	// failing is how many pods do not serve a route as written, by its index; problems is
	// what the first of them says.
	failing  map[int]int
	problems map[int]health.Trouble
	// general is what pods say that is not about one route, the first to say it first; reported
	// is the same, to look it up.
	general  []health.Trouble
	reported map[health.Trouble]bool
}

// judgeRoutes looks at what the pods that are ready say.
func (s *scope) judgeRoutes() {
	s.served = served{
		failing: map[int]int{}, problems: map[int]health.Trouble{}, reported: map[health.Trouble]bool{},
		late: map[int]int{}, lateness: map[int]health.Trouble{},
	}
	for i := range s.pods {
		if pod := &s.pods[i]; replica.CanAnswer(pod) && replica.IsReady(pod) {
			s.judgePod(pod, s.answers[pod.UID])
		}
	}
	s.judgeStale()
	if int32(s.served.ready) < s.deployment.Status.ReadyReplicas {
		// The Deployment knows of more, or has not noticed yet that there are fewer.
		s.unsettled, s.staleCache = true, true
		s.fallBehind(nil, slipwayv1alpha1.ReasonReplicaBehind,
			fmt.Sprintf("the operator does not see every ready pod of Deployment %q", s.deployment.Name))
	}
}

// judgePod looks at what one pod says.
func (s *scope) judgePod(pod *corev1.Pod, answer replica.Answer) {
	switch answer.State {
	case replica.Asking:
		// Neither good nor bad yet. It answers, or is silent soon; a status that is written
		// before must not speak for it.
		s.unsettled = true
		s.fallBehind(nil, slipwayv1alpha1.ReasonReplicaBehind, fmt.Sprintf("pod %q has not said yet what it serves", pod.Name))
	case replica.Silent:
		s.fallBehind(nil, slipwayv1alpha1.ReasonReplicaBehind, fmt.Sprintf("pod %q does not answer on its admin port", pod.Name))
	case replica.Incompatible:
		found := incompatible(pod, answer)
		if !s.counts(pod, found.Reason) {
			found = &health.Trouble{
				Reason:  slipwayv1alpha1.ReasonReplicaBehind,
				Message: fmt.Sprintf("pod %q does not say what it serves: %s", pod.Name, answer.Detail),
			}
		}
		s.fallBehind(nil, found.Reason, found.Message)
	case replica.Crowded:
		s.fallBehind(nil, slipwayv1alpha1.ReasonTooMuchToTell, fmt.Sprintf("what pod %q serves is not known: %s", pod.Name, answer.Detail))
	case replica.Answering:
		s.judgeDocument(pod, answer.Document)
	}
}

func (s *scope) judgeDocument(pod *corev1.Pod, doc *document.Document) {
	generation := s.gateway.Generation
	ours := doc.UID == s.gateway.UID
	switch {
	case ours && doc.Generation > generation:
		// The operator's cache is stale, unless the pod has made it up.
		s.unsettled, s.staleCache = true, true
		s.fallBehind(nil, slipwayv1alpha1.ReasonReplicaBehind,
			fmt.Sprintf("pod %q says that it serves a spec that there is not yet", pod.Name))
	case doc.Stale():
		found := staleness(pod)
		s.fallBehind(doc, found.Reason, found.Message)
		if ours && doc.Generation == generation {
			s.served.note(doc.Problems)
		}
	case ours && doc.Generation == generation:
		s.served.ready++
		s.served.current++
		s.served.note(doc.Problems)
	case doc.Rejected != nil && doc.Rejected.Generation >= generation:
		reason := doc.Rejected.Reason
		if reason == slipwayv1alpha1.ReasonImageIncompatible && !s.counts(pod, reason) {
			reason = slipwayv1alpha1.ReasonReplicaBehind // it is of the image that is being replaced
		}
		s.fallBehind(doc, reason, fmt.Sprintf("pod %q goes on with an earlier spec: %s", pod.Name, doc.Rejected.Message))
	default:
		s.unsettled = true
		s.fallBehind(doc, slipwayv1alpha1.ReasonReplicaBehind, fmt.Sprintf("pod %q serves an earlier spec", pod.Name))
	}
}

// fallBehind counts a pod that is ready and not current. The document is what it says, nil
// where it cannot be believed: then no route is known to be served.
func (s *scope) fallBehind(doc *document.Document, reason, message string) {
	s.served.ready++
	found := health.Trouble{Reason: reason, Message: message}
	if s.served.behind == nil {
		s.served.behind = &found
	}
	for i := range s.gateway.Spec.Routes {
		if s.servesRoute(doc, i) {
			continue
		}
		s.served.late[i]++
		if _, reported := s.served.lateness[i]; !reported {
			s.served.lateness[i] = found
		}
	}
}

// servesRoute reports whether a pod serves a route as this generation of the spec has it,
// whatever generation the pod serves.
func (s *scope) servesRoute(doc *document.Document, route int) bool {
	if doc == nil || doc.UID != s.gateway.UID {
		return false
	}
	if doc.Generation == s.gateway.Generation {
		return true
	}
	digests := s.digests()
	return digests[route] != "" && slices.Contains(doc.Routes, digests[route])
}

// note counts what one pod does not serve as written.
func (v *served) note(problems []document.Problem) {
	counted := map[int]bool{}
	for _, p := range problems {
		found := health.Trouble{Reason: p.Reason, Message: p.Message}
		if p.Route < 0 {
			// The messages of routes name the field; where it is no route, the field is beside.
			found.Message = p.Field + ": " + p.Message
			v.noteGeneral(found)
			continue
		}
		if !counted[p.Route] {
			counted[p.Route] = true
			v.failing[p.Route]++
		}
		if _, reported := v.problems[p.Route]; !reported {
			v.problems[p.Route] = found
		}
	}
}

func (v *served) noteGeneral(found health.Trouble) {
	if v.reported[found] {
		return
	}
	v.reported[found] = true
	v.general = append(v.general, found)
}

// problemOf returns why a route is not live, or nil: what the spec says about it, then
// whom its host belongs to, then what the pods say, then the pods themselves.
func (s *scope) problemOf(route int) *health.Trouble {
	if p, ok := s.check.problems[route]; ok {
		return &p
	}
	host := string(s.gateway.Spec.Routes[route].Host)
	if p, ok := s.conflicts[host]; ok {
		return &p
	}
	if p, ok := s.served.problems[route]; ok {
		return &p
	}
	late, isLate := s.served.lateness[route]
	switch {
	case isLate:
		return &late
	case s.served.ready == 0:
		missing := s.notReady()
		return &health.Trouble{Reason: missing.Reason, Message: missing.Message}
	default:
		return nil
	}
}

func hostConflict(host, owner string) health.Trouble {
	return health.Trouble{Reason: slipwayv1alpha1.ReasonHostConflict, Message: conflictMessage(host, owner)}
}

func tooManyHosts(host, namespace string) health.Trouble {
	return health.Trouble{
		Reason: slipwayv1alpha1.ReasonTooManyHosts,
		Message: fmt.Sprintf("host: %q is not exposed: the APIGateways of namespace %q have %d hosts, and may have no more: remove "+
			"others, or use another namespace", host, namespace, hosts.MaxHosts),
	}
}

func conflictMessage(host, owner string) string {
	if host == "" {
		return fmt.Sprintf("host: requests for any host go to APIGateway %q, which is exposed at the same place and had them first", owner)
	}
	return fmt.Sprintf("host: %q belongs to APIGateway %q, which is exposed at the same place and had it first", host, owner)
}

// Bounds of what status says of one route: there may be 1,000, in an object that must stay
// below 1.5 MB with its spec. A route without a name is called by its host and path.
const (
	maxRouteName    = 128
	maxRouteMessage = 256
)

// routes says which routes are live.
func (s *scope) routes() slipwayv1alpha1.RoutesStatus {
	total := len(s.gateway.Spec.Routes)
	status := slipwayv1alpha1.RoutesStatus{Total: int32(total)}
	replicas := max(int(s.workload().ReplicasAsked()), s.served.ready)
	for i := range total {
		p := s.problemOf(i)
		if p == nil {
			status.Live++
			continue
		}
		status.NotLive = append(status.NotLive, slipwayv1alpha1.RouteNotLive{
			Name:     text.Cut(s.check.names[i], maxRouteName),
			Reason:   p.Reason,
			Message:  text.Cut(p.Message, maxRouteMessage),
			Replicas: fmt.Sprintf("%d/%d", s.served.ready-s.served.late[i]-s.served.failing[i], replicas),
		})
	}
	return status
}
