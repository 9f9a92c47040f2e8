package apigateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/apigateway/replica"
	"github.com/slipway-dev/slipway/internal/apply"
	"github.com/slipway-dev/slipway/internal/outcome"
	"github.com/slipway-dev/slipway/internal/transition"
)

// FieldManager owns the fields that this controller states.
const FieldManager = "slipway-apigateway"

const (
	// detailsInterval is how often status is written for nothing but numbers and words.
	// What a condition says, and why, is written at once.
	detailsInterval = time.Second
	// settleTime is how long status waits for pods to say that they serve what was just
	// asked for. It takes them milliseconds, and a status that calls them behind meanwhile
	// would cost two writes for every change of a route, each as dear as the whole object
	// is large.
	settleTime = time.Second
	// lagTime is how long it waits for a cache that shows less than pods have seen: it
	// would be refused, because it speaks of an earlier spec. As long it waits for one that
	// shows fewer pods than the Deployment counts: it would call replicas behind that
	// serve. What lasts longer is told.
	lagTime = 10 * time.Second
)

// Replicas is what is known of the gateway pods. Package replica implements it.
type Replicas interface {
	// Follow makes these the pods of a gateway that are followed, and no others.
	Follow(ctx context.Context, gateway types.NamespacedName, pods []replica.Pod)
	// Answer returns what a followed pod last said.
	Answer(gateway types.NamespacedName, pod types.UID) replica.Answer
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// Reconciler makes APIGateways true.
type Reconciler struct {
	// client reads from the cache, seeing its own writes, and writes.
	client client.Client
	// fresh knows which APIGateways the cache shows as they are.
	fresh *apply.Freshness
	// applier applies and deletes children.
	applier *apply.Applier
	// gatewayAPI has the kinds that a cluster need not have.
	gatewayAPI *gatewayAPI
	// replicas knows what the pods serve.
	replicas Replicas
	// recorder emits events.
	recorder events.EventRecorder
	// clock tells the time.
	clock clock.PassiveClock
	// pace makes results of what went wrong.
	pace *outcome.Pace
	// image is what the pods run where the spec names nothing else.
	image string

	// checks remembers what specs tell, by UID. Losing it costs compiling them again.
	checks *lru.Cache
	// statusWrites remembers when status was last written, by UID. Losing it costs
	// status writes, nothing else.
	statusWrites *lru.Cache
	// settling remembers since when status waits for pods, by UID. Losing it costs a
	// longer wait.
	settling *lru.Cache
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
// +kubebuilder:rbac:groups="",resources=services;serviceaccounts,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods;secrets,verbs=get;list;watch
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
	if err != nil {
		return r.pace.Result(req.NamespacedName, err, 0)
	}
	if s == nil || !s.gateway.DeletionTimestamp.IsZero() {
		// Owner references delete the children.
		r.replicas.Follow(ctx, req.NamespacedName, nil)
		return r.pace.Result(req.NamespacedName, nil, 0)
	}

	s.check = r.check(s.gateway)
	s.conflicts, s.err = r.findConflicts(ctx, s.gateway)
	s.err = errors.Join(s.err, r.applyChildren(ctx, s))
	r.askPods(ctx, s)
	s.judgePods()
	s.judgeRoutes()
	if s.err != nil && outcome.Worst(s.err) == nil {
		// A lost race: what was seen may be out of date, so there is nothing true to say yet.
		return r.pace.Result(req.NamespacedName, s.err, s.recheck)
	}

	err = errors.Join(s.err, r.writeStatus(ctx, s))
	return r.pace.Result(req.NamespacedName, err, s.recheck)
}

// askPods has the pods followed that can answer, and gets their answers.
func (r *Reconciler) askPods(ctx context.Context, s *scope) {
	key := client.ObjectKeyFromObject(s.gateway)
	var follow []replica.Pod
	for i := range s.pods {
		if pod := &s.pods[i]; answers(pod) {
			follow = append(follow, replica.Pod{UID: pod.UID, IP: pod.Status.PodIP, Ready: isReady(pod)})
		}
	}
	r.replicas.Follow(ctx, key, follow)
	for _, pod := range follow {
		s.answers[pod.UID] = r.replicas.Answer(key, pod.UID)
	}
}

// writeStatus computes status once, from the scope, and writes it when it differs.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	if wait := r.settleWait(s); wait > 0 {
		s.recheckAfter(wait)
		return nil
	}
	status := s.status(r.clock.Now())
	if equality.Semantic.DeepEqual(s.gateway.Status, status) {
		return nil
	}
	before := s.gateway.DeepCopy()
	s.gateway.Status = status
	if wait := r.detailsWait(before, s.gateway); wait > 0 {
		s.recheckAfter(wait)
		return nil
	}
	if err := r.fresh.ConfirmAll(ctx, before, s.children()...); err != nil {
		return err
	}
	// Locked: a status that speaks of a spec which is no longer there must not be written.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, s.gateway, patch); err != nil {
		if apierrors.IsNotFound(err) {
			// Deleted meanwhile.
			return nil
		}
		return outcome.Classify(fmt.Sprintf("the status of APIGateway %q", s.gateway.Name), err)
	}
	r.statusWrites.Add(s.gateway.UID, r.clock.Now())
	transition.Record(r.recorder, s.gateway, before.Status.Conditions, s.gateway.Status.Conditions)
	return nil
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
		known = settled{generation: s.gateway.Generation, since: r.clock.Now()}
		r.settling.Add(s.gateway.UID, known)
	}
	limit := settleTime
	if s.lagging {
		limit = lagTime
	}
	return limit - r.clock.Since(known.(settled).since)
}

// detailsWait returns how long to hold back a status that differs in nothing but
// numbers and words, so that a rollout of many pods does not cost a write for each.
func (r *Reconciler) detailsWait(before, after *slipwayv1alpha1.APIGateway) time.Duration {
	same := before.Status.DeepCopy()
	same.Replicas = after.Status.Replicas
	same.ReadyReplicas = after.Status.ReadyReplicas
	same.Summary.Replicas = after.Status.Summary.Replicas
	same.Summary.Routes = after.Status.Summary.Routes
	same.Routes = after.Status.Routes
	for i := range same.Conditions {
		now := meta.FindStatusCondition(after.Status.Conditions, same.Conditions[i].Type)
		if now != nil && now.Reason == same.Conditions[i].Reason {
			same.Conditions[i].Message = now.Message
		}
	}
	if !equality.Semantic.DeepEqual(*same, after.Status) {
		return 0
	}
	last, ok := r.statusWrites.Get(after.UID)
	if !ok {
		return 0
	}
	return detailsInterval - r.clock.Since(last.(time.Time))
}
