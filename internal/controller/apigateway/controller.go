package apigateway

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// FieldManager owns the fields that this controller states.
const FieldManager = "slipway-apigateway"

const (
	// settleTime is how long status waits for pods to say that they serve what was just
	// asked for. It takes them milliseconds, and a status that calls them behind meanwhile
	// would cost two writes for every change of a route, each as dear as the whole object
	// is large.
	settleTime = time.Second
	// staleCacheTime is how long it waits for a cache that shows less than pods have seen: it
	// would be refused, because it speaks of an earlier spec. As long it waits for one that
	// shows fewer pods than the Deployment counts: it would call replicas behind that
	// serve. What lasts longer is reported.
	staleCacheTime = 10 * time.Second
)

var _ reconcile.Reconciler = (*Reconciler)(nil)

// Reconciler makes APIGateways true.
type Reconciler struct {
	// kit is what it has in common with the reconcilers of other kinds.
	kit *kit.Tools
	// gatewayAPI has the kinds that a cluster need not have.
	gatewayAPI *gatewayAPI
	// hosts records whose a host is.
	hosts *hosts.Book
	// httpRouteGateways are the Gateways for which HTTPRoutes may be made.
	httpRouteGateways []string
	// replicas knows what the pods serve.
	replicas replica.Replicas
	// image is what the pods run where the spec names nothing else.
	image string

	// checks remembers what specs tell, by UID. Losing it costs compiling them again.
	checks *lru.Cache
	// settling remembers since when status waits for pods, by UID. Losing it costs a
	// longer wait.
	settling *lru.Cache
	// quotaSecrets remembers which Secret of an APIGateway was looked at, by UID. Losing it costs
	// a read.
	quotaSecrets *lru.Cache
}

// The operator's rights. It cannot give the gateway pods a right that it does not have
// itself: that is why it may read EndpointSlices and the content of Secrets, and why
// nobody can use an APIGateway to read more than the Secrets that it names. What exposes
// a gateway is deleted when the spec asks for something else.
//
// +kubebuilder:rbac:groups=slipway.dev,resources=apigateways,verbs=get;list;watch
// +kubebuilder:rbac:groups=slipway.dev,resources=apigateways/status,verbs=get;patch
// +kubebuilder:rbac:groups=slipway.dev,resources=apigateways/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services;serviceaccounts,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods;secrets;resourcequotas;limitranges,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gateways,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one APIGateway true and says how far it got.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.load(ctx, req.NamespacedName)
	switch {
	case err != nil:
		return r.kit.Abort(req.NamespacedName, err)
	case s == nil:
		r.replicas.Follow(ctx, req.NamespacedName, document.Size{}, nil)
		if again, err := r.giveUpHosts(ctx, req.NamespacedName); err != nil || again > 0 {
			return r.kit.Conclude(ctx, req.NamespacedName, err, &again, nothingToTell)
		}
		return r.kit.Forget(ctx, req.NamespacedName)
	case !s.gateway.DeletionTimestamp.IsZero():
		// Owner references delete the children.
		r.kit.Refusals.Forget(ctx, req.NamespacedName)
		r.replicas.Follow(ctx, req.NamespacedName, document.Size{}, nil)
		return r.kit.Conclude(ctx, req.NamespacedName, nil, &s.recheck, func() error {
			return r.writeStatus(ctx, s, s.terminatingStatus(r.kit.Clock.Now()))
		})
	}

	s.check = r.check(s.gateway)
	s.exposeRefusal = r.exposeRefusal(s.gateway)
	if s.err = r.kit.Namespaces.Check(ctx, s.gateway); s.err == nil {
		s.err = r.takeHosts(ctx, s)
		s.err = errors.Join(s.err, r.applyChildren(ctx, s))
		s.err = errors.Join(s.err, r.releaseHosts(ctx, s))
	}
	r.askPods(ctx, s)
	r.listen(ctx, s)
	going := outcome.Only(s.err, slipwayv1alpha1.ReasonNamespaceTerminating)
	s.looked, s.refusal = r.kit.LookAgain(ctx, s.gateway, s.workload(), going, &s.recheck)
	s.judgePods(r.kit.Clock.Now())
	s.judgeRoutes()
	return r.kit.Conclude(ctx, req.NamespacedName, s.err, &s.recheck, func() error {
		if wait := r.settleWait(s); wait > 0 {
			s.recheck.After(wait)
			return nil
		}
		return r.writeStatus(ctx, s, s.status(r.kit.Clock.Now()), s.children()...)
	})
}

// maxRoutes is how many routes a spec can have: pods may serve another one than the cache shows.
const maxRoutes = 1000

// size is how much a pod can serve. Only those of a Gateway of the Gateway API tell of listeners.
func (s *scope) size() document.Size {
	routes := len(s.gateway.Spec.Routes)
	return document.Size{Routes: max(maxRoutes, routes), Objects: routes}
}

// nothingToTell is the status of what has gone.
func nothingToTell() error { return nil }

// askPods has the pods followed that can answer, gets their answers, and lets those that
// are stale know whether others are current.
func (r *Reconciler) askPods(ctx context.Context, s *scope) {
	key := client.ObjectKeyFromObject(s.gateway)
	var follow []replica.Pod
	for i := range s.pods {
		if pod := &s.pods[i]; replica.CanAnswer(pod) {
			follow = append(follow, replica.Pod{UID: pod.UID, IP: pod.Status.PodIP, Ready: replica.IsReady(pod)})
		}
	}
	r.replicas.Follow(ctx, key, s.size(), follow)
	for _, pod := range follow {
		s.answers[pod.UID] = r.replicas.Answer(key, pod.UID)
	}
	r.replicas.Standby(key, s.standby())
}

// listen reads the events of pods whose status does not say what keeps them from serving.
func (r *Reconciler) listen(ctx context.Context, s *scope) {
	warnings, again := r.kit.Events.Listen(ctx, s.judgedPods(), false)
	s.events = warnings
	s.recheck.After(again.In())
}

// writeStatus writes a status when it differs. children are what it speaks of.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, next slipwayv1alpha1.APIGatewayStatus, children ...client.Object) error {
	_, _, err := status.Update(ctx, r.kit.Statuses, s.gateway, &s.gateway.Status, next, withDetails, &s.recheck, children...)
	return err
}

// settled is how long status has waited for pods, and for which generation.
type settled struct {
	generation int64
	since      time.Time
}

// settleWait returns how long to hold status back because pods are about to say
// something else.
func (r *Reconciler) settleWait(s *scope) time.Duration {
	if !s.unsettled {
		r.settling.Remove(s.gateway.UID)
		return 0
	}
	known, ok := r.settling.Get(s.gateway.UID)
	if !ok || known.(settled).generation != s.gateway.Generation {
		known = settled{generation: s.gateway.Generation, since: r.kit.Clock.Now()}
		r.settling.Add(s.gateway.UID, known)
	}
	limit := settleTime
	if s.staleCache {
		limit = staleCacheTime
	}
	return limit - r.kit.Clock.Since(known.(settled).since)
}

// withDetails returns a status with the numbers and words of another one.
func withDetails(of, from slipwayv1alpha1.APIGatewayStatus) slipwayv1alpha1.APIGatewayStatus {
	of.Replicas = from.Replicas
	of.ReadyReplicas = from.ReadyReplicas
	of.Summary.Replicas = from.Summary.Replicas
	of.Summary.Routes = from.Summary.Routes
	of.Routes = from.Routes
	of.Conditions = status.WithMessagesOf(from.Conditions, of.Conditions)
	return of
}
