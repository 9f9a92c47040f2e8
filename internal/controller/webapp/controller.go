package webapp

import (
	"context"
	"errors"

	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/contentkey"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// FieldManager owns the fields that this controller states.
const FieldManager = "slipway-webapp"

var _ reconcile.Reconciler = (*Reconciler)(nil)

// Reconciler makes WebApps true.
type Reconciler struct {
	// kit is what it has in common with the reconcilers of other kinds.
	kit *kit.Tools
	// metrics counts.
	metrics *metrics
	// digests remembers what referenced Secrets and ConfigMaps hashed to, by version.
	// Losing it costs live reads, nothing else.
	digests *lru.Cache
	// keys keys what is written of their content.
	keys contentkey.Keys
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
// +kubebuilder:rbac:groups="",resources=resourcequotas;limitranges;serviceaccounts,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one WebApp true and says how far it got.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.load(ctx, req.NamespacedName)
	switch {
	case err != nil:
		return r.kit.Abort(req.NamespacedName, err)
	case s == nil:
		return r.kit.Forget(ctx, req.NamespacedName)
	case !s.app.DeletionTimestamp.IsZero():
		// Owner references delete the children.
		r.kit.Refusals.Forget(ctx, req.NamespacedName)
		return r.kit.Conclude(ctx, req.NamespacedName, nil, &s.recheck, func() error {
			return r.writeStatus(ctx, s, s.terminatingStatus(r.kit.Clock.Now()))
		})
	}

	if s.err == nil {
		s.err = r.kit.Namespaces.Check(ctx, s.app)
	}
	if s.err == nil {
		s.pullSecrets, s.err = pullsecret.Look(ctx, r.kit.Client, s.app.Namespace, s.app.Spec.ImagePullSecrets, "spec.imagePullSecrets", "")
	}
	if s.err == nil {
		s.err = r.resolveConfig(ctx, s)
	}
	ctx = apply.Using(ctx, s.config.seen...)
	if s.err == nil {
		s.err = s.chooseRevision(r.names)
	}
	if s.err == nil {
		s.err = r.applyChildren(ctx, s)
	}
	going := outcome.Only(s.err, slipwayv1alpha1.ReasonNamespaceTerminating)
	s.looked, s.refusal = r.kit.LookAgain(ctx, s.app, s.workload(), s.app.Spec.Paused || going, &s.recheck)
	// One time for both: a verdict comes with what was heard for it.
	now := r.kit.Clock.Now()
	r.listen(ctx, s, now)
	s.judge(now)
	if s.err == nil || outcome.Only(s.err, slipwayv1alpha1.ReasonAltered) {
		s.err = errors.Join(s.err, r.keepRevisions(ctx, s))
	}
	return r.kit.Conclude(ctx, req.NamespacedName, s.err, &s.recheck, func() error {
		return r.writeStatus(ctx, s, s.status(r.kit.Clock.Now()), s.children()...)
	})
}

// writeStatus writes a status when it differs. children are what it speaks of.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, next slipwayv1alpha1.WebAppStatus, children ...client.Object) error {
	before, written, err := status.Update(ctx, r.kit.Statuses, s.app, &s.app.Status, next, withDetails, &s.recheck, children...)
	if written {
		r.metrics.observe(before, s.app, r.kit.Clock.Now())
	}
	return err
}

// withDetails returns a status with the replica counts and words of another one: which pod of a rollout is waited for is
// told in words.
func withDetails(of, from slipwayv1alpha1.WebAppStatus) slipwayv1alpha1.WebAppStatus {
	of.Replicas = from.Replicas
	of.ReadyReplicas = from.ReadyReplicas
	of.Summary.Replicas = from.Summary.Replicas
	of.Conditions = status.WithMessagesOf(from.Conditions, of.Conditions)
	return of
}
