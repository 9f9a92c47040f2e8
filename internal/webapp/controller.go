package webapp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/apply"
	"github.com/slipway-dev/slipway/internal/outcome"
	"github.com/slipway-dev/slipway/internal/transition"
)

// FieldManager owns the fields that this controller states.
const FieldManager = "slipway-webapp"

// detailsInterval is how often status is written for nothing but new replica counts
// and new words of a condition. What a condition says, and why, is written at once.
const detailsInterval = time.Second

var _ reconcile.Reconciler = (*Reconciler)(nil)

// Reconciler makes WebApps true.
type Reconciler struct {
	// client reads from the cache, seeing its own writes, and writes.
	client client.Client
	// live reads from the API server: the content of a Secret or ConfigMap that changed.
	live client.Reader
	// fresh knows which WebApps the cache shows as they are.
	fresh *apply.Freshness
	// applier applies and deletes children.
	applier *apply.Applier
	// recorder emits events.
	recorder events.EventRecorder
	// clock tells the time.
	clock clock.PassiveClock
	// pace makes results of what went wrong.
	pace *outcome.Pace
	// metrics counts.
	metrics *metrics

	// digests remembers what referenced Secrets and ConfigMaps hashed to, by version.
	// Losing it costs live reads, nothing else.
	digests *lru.Cache
	// names remembers what specs are called.
	names *names
	// statusWrites remembers when status was last written, by UID. Losing it costs
	// status writes, nothing else.
	statusWrites *lru.Cache
}

// The operator's rights. Secrets and ConfigMaps are watched as metadata; their
// content is read only where a WebApp names them. Only what an edit makes superfluous is
// deleted: neither what serves nor what holds data.
//
// +kubebuilder:rbac:groups=slipway.dev,resources=webapps,verbs=get;list;watch
// +kubebuilder:rbac:groups=slipway.dev,resources=webapps/status,verbs=get;patch
// +kubebuilder:rbac:groups=slipway.dev,resources=webapps/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services;persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods;secrets;configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one WebApp true and says how far it got.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.load(ctx, req.NamespacedName)
	if err != nil {
		return r.pace.Result(req.NamespacedName, err, 0)
	}
	if s == nil || !s.app.DeletionTimestamp.IsZero() {
		// Owner references delete the children.
		return r.pace.Result(req.NamespacedName, nil, 0)
	}

	if s.err == nil {
		s.err = r.resolveConfig(ctx, s)
	}
	if s.err == nil {
		s.err = s.chooseRevision(r.names)
	}
	if s.err == nil {
		s.err = r.applyChildren(ctx, s)
	}
	s.judge(r.clock.Now())
	if s.err == nil {
		s.err = r.keepRevisions(ctx, s)
	}
	if s.err != nil && outcome.Worst(s.err) == nil {
		// A lost race: what was seen may be out of date, so there is nothing true to say yet.
		return r.pace.Result(req.NamespacedName, s.err, s.recheck)
	}

	err = errors.Join(s.err, r.writeStatus(ctx, s))
	return r.pace.Result(req.NamespacedName, err, s.recheck)
}

// writeStatus computes status once, from the scope, and writes it when it differs.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	status := s.status(r.clock.Now())
	if equality.Semantic.DeepEqual(s.app.Status, status) {
		return nil
	}
	before := s.app.DeepCopy()
	s.app.Status = status
	if wait := r.detailsWait(before, s.app); wait > 0 {
		s.recheckAfter(wait)
		return nil
	}
	if err := r.fresh.ConfirmAll(ctx, before, s.children()...); err != nil {
		return err
	}
	// Locked: a status that speaks of a spec which is no longer there must not be written.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, s.app, patch); err != nil {
		if apierrors.IsNotFound(err) {
			// Deleted meanwhile.
			return nil
		}
		return outcome.Classify(fmt.Sprintf("the status of WebApp %q", s.app.Name), err)
	}
	r.statusWrites.Add(s.app.UID, r.clock.Now())
	transition.Record(r.recorder, s.app, before.Status.Conditions, s.app.Status.Conditions)
	r.metrics.observe(before, s.app, r.clock.Now())
	return nil
}

// detailsWait returns how long to hold back a status that differs in nothing but
// replica counts and words, so that a rollout of many pods does not cost a write for
// each: which of them is waited for is told in words.
func (r *Reconciler) detailsWait(before, after *slipwayv1alpha1.WebApp) time.Duration {
	same := before.Status.DeepCopy()
	same.Replicas = after.Status.Replicas
	same.ReadyReplicas = after.Status.ReadyReplicas
	same.Summary.Replicas = after.Status.Summary.Replicas
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
