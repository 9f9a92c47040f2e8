package backup

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/finalizer"
	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// FieldManager owns the fields that this controller states.
const FieldManager = "slipway-backup"

var _ reconcile.Reconciler = (*Reconciler)(nil)

// Reconciler makes Backups true.
type Reconciler struct {
	// kit is what it has in common with the reconcilers of other kinds.
	kit *kit.Tools
	// writers lets one Job at a time write to a repository.
	writers lock.Writers
	// named reads, as metadata, what Backups name and others make.
	named *optional.Kinds
	// templates knows what the containers of workloads are called.
	templates templates
	// references looks for the Secrets and ConfigMaps that a pod needs.
	references *transfer.References
	// moves looks at Jobs.
	moves *transfer.Jobs
	// metrics counts.
	metrics *metrics
	// image is that of slipway-backup.
	image string
	// hooks reports whether the operator runs hooks.
	hooks bool
	// finalizer holds a Backup until its repository is deleted, where the spec asks for that.
	finalizer finalizer.Finalizer
}

// The operator's rights. It makes a Secret with a password where there is none, adds the ID of the repository to it, and takes
// that away when the repository was deleted. It never changes a password, and never deletes one.
//
// +kubebuilder:rbac:groups=slipway.dev,resources=backups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=slipway.dev,resources=backups/status,verbs=get;patch
// +kubebuilder:rbac:groups=slipway.dev,resources=backups/finalizers,verbs=update
// +kubebuilder:rbac:groups=slipway.dev,resources=backupruns,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one Backup true and says how far it got.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.load(ctx, req.NamespacedName)
	switch {
	case err != nil:
		return r.kit.Abort(req.NamespacedName, err)
	case s == nil:
		r.metrics.forget(req.NamespacedName)
		return r.kit.Forget(ctx, req.NamespacedName)
	}
	now := r.kit.Clock.Now()
	if !s.backup.DeletionTimestamp.IsZero() {
		// Owner references delete runs and Jobs.
		s.err = r.finish(ctx, s, now)
		return r.kit.Conclude(ctx, req.NamespacedName, s.err, &s.recheck, func() error {
			return r.writeStatus(ctx, s, s.terminatingStatus(now))
		})
	}

	if s.err = r.kit.Namespaces.Check(ctx, s.backup); s.err == nil {
		s.err = s.check(now)
	}
	if s.err == nil {
		s.err = r.resolve(ctx, s)
	}
	if s.err == nil {
		s.err = r.hold(ctx, s)
	}
	if s.err == nil {
		s.err = r.keepKey(ctx, s)
	}
	if s.err == nil {
		s.err = r.start(ctx, s)
	}
	if s.err == nil {
		s.err = r.keep(ctx, s, now)
	}
	if s.err == nil {
		s.err = r.runDrill(ctx, s, now)
	}
	if s.err == nil {
		s.err = r.tidy(ctx, s)
	}
	return r.kit.Conclude(ctx, req.NamespacedName, s.err, &s.recheck, func() error {
		return r.writeStatus(ctx, s, s.status(now))
	})
}

// writeStatus writes a status when it differs.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, next slipwayv1alpha1.BackupStatus) error {
	missed := next.MissedSlots - s.backup.Status.MissedSlots
	failed := failedDrill(s.backup.Status.Drill, next.Drill)
	_, written, err := status.Update(ctx, r.kit.Statuses, s.backup, &s.backup.Status, next, withDetails, &s.recheck)
	if written && missed > 0 {
		r.metrics.missed.Add(float64(missed))
		r.kit.Warn(s.backup, slipwayv1alpha1.ReasonSlotMissed,
			"times of the schedule went by without a run: status.missedSlots counts them")
	}
	if written && failed != "" {
		r.metrics.drillFailures.WithLabelValues(failed).Inc()
		r.kit.Warn(s.backup, slipwayv1alpha1.ReasonDrillFailed, "the drill failed ("+failed+"): "+next.Drill.Message)
	}
	if err == nil {
		r.metrics.observe(s.backup)
	}
	return err
}

// withDetails returns a status with the numbers and words of another one.
func withDetails(of, from slipwayv1alpha1.BackupStatus) slipwayv1alpha1.BackupStatus {
	of.Message, of.Snapshots, of.Size = from.Message, from.Snapshots, from.Size
	of.Conditions = status.WithMessagesOf(from.Conditions, of.Conditions)
	return of
}
