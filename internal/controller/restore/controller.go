package restore

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// FieldManager owns the fields that this controller states.
const FieldManager = "slipway-restore"

var _ reconcile.Reconciler = (*Reconciler)(nil)

// Reconciler makes Restores true.
type Reconciler struct {
	// kit is what it has in common with the reconcilers of other kinds.
	kit *kit.Tools
	// named reads, as metadata, what Restores name and others make.
	named *optional.Kinds
	// references looks for the Secrets and ConfigMaps that a pod needs.
	references *transfer.References
	// moves looks at Jobs.
	moves *transfer.Jobs
	// metrics counts.
	metrics *metrics
	// image is that of slipway-backup.
	image string
	// logs reads how far a pod is.
	logs transfer.Logs
	// writers lets one Job at a time write to a volume.
	writers lock.Writers
}

// The operator's rights. A volume is made where a Restore asks for a new one. None is ever changed or deleted.
//
// +kubebuilder:rbac:groups=slipway.dev,resources=restores,verbs=get;list;watch
// +kubebuilder:rbac:groups=slipway.dev,resources=restores/status,verbs=get;patch
// +kubebuilder:rbac:groups=slipway.dev,resources=restores/finalizers,verbs=update
// +kubebuilder:rbac:groups=slipway.dev,resources=backups;backupruns,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one Restore true and says how far it got.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.load(ctx, req.NamespacedName)
	switch {
	case err != nil:
		return r.kit.Abort(req.NamespacedName, err)
	case s == nil:
		return r.kit.Forget(ctx, req.NamespacedName)
	case !s.restore.DeletionTimestamp.IsZero():
		// Owner references delete the Jobs. The volume stays, with what was written.
		return r.kit.Conclude(ctx, req.NamespacedName, nil, &s.recheck, func() error { return nil })
	case s.restore.Ended():
		return r.kit.Conclude(ctx, req.NamespacedName, r.tidy(ctx, s), &s.recheck, func() error { return nil })
	}

	now := r.kit.Clock.Now()
	s.err = r.findUnlabelled(ctx, s)
	if s.err == nil && s.job.UID == "" {
		s.err = r.kit.Namespaces.Check(ctx, s.restore)
	}
	if s.err == nil && s.job.UID == "" {
		s.err = s.find()
		if s.err == nil {
			s.err = r.transfer(ctx, s, now)
		}
	}
	r.judge(ctx, s, now)
	r.listen(ctx, s, now)
	if s.err == nil {
		s.err = r.tidy(ctx, s)
	}
	return r.kit.Conclude(ctx, req.NamespacedName, s.err, &s.recheck, func() error {
		return r.writeStatus(ctx, s, s.status(now))
	})
}

// writeStatus writes a status when it differs.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, next slipwayv1alpha1.RestoreStatus) error {
	_, written, err := status.Update(ctx, r.kit.Statuses, s.restore, &s.restore.Status, next, withDetails, &s.recheck, s.children()...)
	if written && s.restore.Ended() {
		r.metrics.observe(s.restore)
	}
	return err
}

// withDetails returns a status with the numbers and words of another one.
func withDetails(of, from slipwayv1alpha1.RestoreStatus) slipwayv1alpha1.RestoreStatus {
	of.Progress, of.Message, of.Summary = from.Progress, from.Message, from.Summary
	of.Conditions = status.WithMessagesOf(from.Conditions, of.Conditions)
	return of
}
