package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// served is what the pods that are ready serve. Pods that are not get no requests.
type served struct {
	replicas []replicaView
	// hidden reports whether the Deployment counts more ready pods than the cache shows.
	hidden bool
}

// replicaView is what one of them serves.
type replicaView struct {
	pod *corev1.Pod
	// mute is why it does not say what it serves; empty: it does.
	mute string
	// asking reports whether it has not answered yet, and silent whether it does not answer any more.
	asking, silent bool
	// refuses is why it cannot serve the newest objects, so that it serves old ones. Nil: it can.
	refuses *document.Rejected
	// what it serves: listeners by name and digest, and the digests of routes.
	listeners map[document.ServedListener]bool
	routes    map[string]bool
	// apart is what it does not share with the others though it should, by reason.
	apart map[string]string
	// unfetched is what it could not fetch for GatewayPolicies, by their names.
	unfetched map[string]document.Problem
}

// judgePods looks at what the pods that are ready say.
func (s *scope) judgePods() {
	for i := range s.pods {
		pod := &s.pods[i]
		if replica.CanAnswer(pod) && replica.IsReady(pod) {
			s.served.replicas = append(s.served.replicas, judge(s.gateway.UID, pod, s.answers[pod.UID]))
		}
	}
	s.served.hidden = int32(len(s.served.replicas)) < s.deployment.Status.ReadyReplicas
}

func judge(gateway types.UID, pod *corev1.Pod, answer replica.Answer) replicaView {
	one := replicaView{pod: pod, listeners: map[document.ServedListener]bool{}, routes: map[string]bool{}, apart: map[string]string{}, unfetched: map[string]document.Problem{}}
	switch {
	case answer.State == replica.Asking:
		one.asking = true
		one.mute = fmt.Sprintf("pod %q has not said yet what it serves", pod.Name)
	case answer.State == replica.Silent:
		one.silent = true
		one.mute = fmt.Sprintf("pod %q does not answer on its admin port", pod.Name)
	case answer.State == replica.Incompatible:
		one.mute = fmt.Sprintf("pod %q does not say what it serves: %s", pod.Name, answer.Detail)
	case answer.State == replica.Crowded:
		one.mute = fmt.Sprintf("what pod %q serves is not known: %s", pod.Name, answer.Detail)
	case answer.Document.UID != gateway:
		one.asking = true
		one.mute = fmt.Sprintf("pod %q does not serve the Gateway yet", pod.Name)
	case answer.Document.Stale():
		one.mute = fmt.Sprintf("pod %q has not heard from the API server: it may serve old routes, endpoints and Secrets", pod.Name)
	default:
		one.refuses = answer.Document.Rejected
		for _, l := range answer.Document.Listeners {
			one.listeners[l] = true
		}
		for _, digest := range answer.Document.Routes {
			one.routes[digest] = true
		}
		one.hear(answer.Document.Problems)
	}
	return one
}

// hear keeps those problems that are reported of policies.
func (r *replicaView) hear(problems []document.Problem) {
	for _, problem := range problems {
		switch problem.Reason {
		case slipwayv1alpha1.ReasonLimitNotShared, slipwayv1alpha1.ReasonAffinityNotShared:
			r.apart[problem.Reason] = problem.Message
		case slipwayv1alpha1.ReasonKeysNotFetched, slipwayv1alpha1.ReasonProviderNotFetched:
			r.unfetched[problem.Name] = problem
		}
	}
}

// unfetched is what the first pod that lacks it could not fetch for a policy, nil where none says so of what the policy names now.
func (v served) unfetched(policy *gatewayapi.GatewayPolicy) *lack {
	for _, one := range v.replicas {
		problem := one.unfetched[policy.Name.String()]
		named := func(address string) bool { return strings.Contains(problem.Message, address) }
		if slices.ContainsFunc(policy.KeyAddresses(), named) {
			return &lack{reason: problem.Reason, message: fmt.Sprintf("pod %q: %s", one.pod.Name, problem.Message), passing: true}
		}
	}
	return nil
}

// confirmSilence returns an error while a pod that does not answer has gone, or gets no requests any more, and the cache does not
// show that yet. What its silence would say of everything that it served must not be written. Each pod is looked at once while it is silent.
func (r *Reconciler) confirmSilence(ctx context.Context, s *scope) error {
	for _, one := range s.served.replicas {
		if !one.silent {
			r.silent.Remove(one.pod.UID)
			continue
		}
		if _, known := r.silent.Get(one.pod.UID); known {
			continue
		}
		live := &corev1.Pod{}
		err := r.kit.Live.Get(ctx, client.ObjectKeyFromObject(one.pod), live)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return outcome.Classify(fmt.Sprintf("pod %q", one.pod.Name), err)
		case err != nil || live.UID != one.pod.UID || !replica.CanAnswer(live) || !replica.IsReady(live):
			return outcome.StaleCache(fmt.Sprintf("pod %q", one.pod.Name))
		}
		r.silent.Add(one.pod.UID, true)
	}
	return nil
}

// lack is why something is not served by every pod that is ready, nil where it is.
type lack struct {
	reason, message string
	// passing reports whether a pod is about to say something else.
	passing bool
}

// lacking finds the first pod that lacks something. what is how that is called.
func (v served) lacking(what string, has func(replicaView) bool) *lack {
	for _, one := range v.replicas {
		switch {
		case one.mute != "":
			return &lack{reason: ReasonReplicaBehind, message: one.mute, passing: one.asking}
		case !has(one) && one.refuses != nil:
			return &lack{reason: ReasonReplicaBehind, message: fmt.Sprintf("pod %q does not serve %s: %s", one.pod.Name, what, one.refuses.Message)}
		case !has(one):
			return &lack{reason: ReasonReplicaBehind, message: fmt.Sprintf("pod %q does not serve %s yet", one.pod.Name, what), passing: true}
		}
	}
	switch {
	case v.hidden:
		return &lack{reason: ReasonReplicaBehind, message: "the operator does not see every ready pod", passing: true}
	case len(v.replicas) == 0:
		return &lack{reason: ReasonNoReplica, message: "no pod of the Gateway is ready"}
	default:
		return nil
	}
}

// refusing finds the first pod that cannot serve the newest objects, so that it serves old ones.
func (v served) refusing() *lack {
	for _, one := range v.replicas {
		if one.refuses != nil {
			return &lack{reason: one.refuses.Reason, message: fmt.Sprintf("pod %q serves old objects, and no change: %s", one.pod.Name, one.refuses.Message)}
		}
	}
	return nil
}

// apart finds the first pod that does not share something with the others, of which the reason tells. Pods tell of limits when that
// has lasted, and of sessions at once: the secret of those may be about to come.
func (v served) apart(reason string) *lack {
	for _, one := range v.replicas {
		if message := one.apart[reason]; message != "" {
			return &lack{reason: reason, message: fmt.Sprintf("pod %q: %s", one.pod.Name, message), passing: reason == slipwayv1alpha1.ReasonAffinityNotShared}
		}
	}
	return nil
}

// listenerDigest is by what a pod says that it serves a listener.
func (s *scope) listenerDigest(l *gatewayapi.Listener) document.ServedListener {
	parts := l.Parts(
		func(name types.NamespacedName) string { return s.versions[name] },
		func(name types.NamespacedName) string { return s.bundleVersions[name] },
	)
	parts = append(parts, desired.Settings(s.parameters).Arguments()...)
	return document.ServedListener{Name: l.Key(), Digest: document.ListenerDigest(l.Port, l.Secure(), l.Hostname, parts)}
}

// listenerLack is why a valid listener is not served by every pod.
func (s *scope) listenerLack(l *gatewayapi.Listener) *lack {
	digest := s.listenerDigest(l)
	return s.served.lacking(fmt.Sprintf("listener %q", l.Name), func(one replicaView) bool { return one.listeners[digest] })
}

// routeLack is why a route is not served by every pod, or not with the sessions that it asks for. What policies lack is reported there.
func (s *scope) routeLack(route *gatewayapi.Route) *lack {
	digest := document.RouteDigest(route.UID, route.Generation)
	lack := s.served.lacking("this generation of the route", func(one replicaView) bool { return one.routes[digest] })
	if lack == nil && route.SharesAffinity {
		return s.served.apart(slipwayv1alpha1.ReasonAffinityNotShared)
	}
	return lack
}

// standby returns the pods that are to take no new connections while they are stale: none unless another that is ready hears
// the API server.
func (s *scope) standby() map[types.UID]bool {
	newest := int64(-1)
	for i := range s.pods {
		pod := &s.pods[i]
		answer := s.answers[pod.UID]
		if replica.CanAnswer(pod) && replica.IsReady(pod) && answer.State == replica.Answering && answer.Document.UID == s.gateway.UID && answer.Document.Current() {
			newest = max(newest, answer.Document.Generation)
		}
	}
	pods := map[types.UID]bool{}
	for i := range s.pods {
		if answer := s.answers[s.pods[i].UID]; replica.IsStale(answer) && answer.Document.Generation <= newest {
			pods[s.pods[i].UID] = true
		}
	}
	return pods
}
