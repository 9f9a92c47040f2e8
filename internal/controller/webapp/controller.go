package webapp

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/podevents"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// FieldManager owns the fields that this controller states.
const FieldManager = "slipway-webapp"

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
	// blockers notices when an object in the way of a child has gone.
	blockers *blocker.Watches
	// statuses writes what there is to say.
	statuses *status.Writer
	// warn writes an event.
	warn func(owner client.Object, reason, message string)
	// clock tells the time.
	clock clock.PassiveClock
	// events reads what the kubelet says of pods nowhere else.
	events *podevents.Reader
	// conflicts makes results, with backoff after conflicts.
	conflicts *outcome.ConflictBackoff
	// metrics counts.
	metrics *metrics

	// digests remembers what referenced Secrets and ConfigMaps hashed to, by version.
	// Losing it costs live reads, nothing else.
	digests *lru.Cache
	// names remembers what specs are called.
	names *names
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
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one WebApp true and says how far it got.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.load(ctx, req.NamespacedName)
	if err != nil {
		return r.conflicts.Result(req.NamespacedName, err, 0)
	}
	if s == nil || !s.app.DeletionTimestamp.IsZero() {
		// Owner references delete the children.
		r.blockers.Keep(ctx, req.NamespacedName, nil)
		return r.leave(ctx, req.NamespacedName, s)
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
	r.listen(ctx, s, r.clock.Now())
	s.judge(r.clock.Now())
	if s.err == nil {
		s.err = r.keepRevisions(ctx, s)
	}
	r.blockers.Keep(ctx, req.NamespacedName, outcome.Blockers(s.err))
	if s.err != nil && outcome.Worst(s.err) == nil {
		// A lost race: what was seen may be out of date, so there is nothing true to say yet.
		return r.conflicts.Result(req.NamespacedName, s.err, s.recheck.In())
	}

	err = errors.Join(s.err, r.writeStatus(ctx, s, s.status(r.clock.Now()), s.children()...))
	return r.conflicts.Result(req.NamespacedName, err, s.recheck.In())
}

// leave says of a WebApp that is being deleted that it is. Without a scope it has gone.
func (r *Reconciler) leave(ctx context.Context, key types.NamespacedName, s *scope) (ctrl.Result, error) {
	if s == nil {
		return r.conflicts.Result(key, nil, 0)
	}
	err := r.writeStatus(ctx, s, s.terminatingStatus(r.clock.Now()))
	return r.conflicts.Result(key, err, s.recheck.In())
}

// writeStatus writes a status when it differs. children are what it speaks of.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, now slipwayv1alpha1.WebAppStatus, children ...client.Object) error {
	if equality.Semantic.DeepEqual(s.app.Status, now) {
		return nil
	}
	before := s.app.DeepCopy()
	s.app.Status = now
	written, wait, err := r.statuses.Write(ctx, before, s.app, onlyDetails(before.Status, now), children...)
	s.recheck.After(wait)
	if written {
		r.metrics.observe(before, s.app, r.clock.Now())
	}
	return err
}

// onlyDetails tells statuses that differ in nothing but replica counts and words: which
// pod of a rollout is waited for is told in words.
func onlyDetails(before, after slipwayv1alpha1.WebAppStatus) bool {
	before.Replicas = after.Replicas
	before.ReadyReplicas = after.ReadyReplicas
	before.Summary.Replicas = after.Summary.Replicas
	before.Conditions = status.WithMessagesOf(after.Conditions, before.Conditions)
	return equality.Semantic.DeepEqual(before, after)
}
