package backuprun

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/background"
	"github.com/slipway-dev/slipway/internal/backup/hook"
	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/finalizer"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// FieldManager owns the fields that this controller states.
const FieldManager = "slipway-backuprun"

var _ reconcile.Reconciler = (*Reconciler)(nil)

// Reconciler makes BackupRuns true.
type Reconciler struct {
	// kit is what it has in common with the reconcilers of other kinds.
	kit *kit.Tools
	// references looks for the Secrets and ConfigMaps that a pod needs.
	references *transfer.References
	// moves looks at Jobs.
	moves *transfer.Jobs
	// metrics counts.
	metrics *metrics
	// image is that of slipway-backup.
	image string
	// writers lets one Job at a time write to a repository.
	writers lock.Writers
	// admission says which runs may have a pod.
	admission *admission
	// logs reads how far a pod is.
	logs transfer.Logs
	// exec runs hooks. Nil: the operator runs none.
	exec Execer
	// calls are the hooks that run.
	calls *background.Pool[call, hook.Ended]
	// finalizer holds a run whose after hooks are pending.
	finalizer finalizer.Finalizer
	// staging makes and deletes VolumeSnapshots and what is made from them.
	staging *apply.Applier
	// limited reports whether the operator may not read what is in no namespace.
	limited bool
}

// The operator's rights. Volumes, and the pods and workloads that use them, are read when a Job is made for them. They are
// never changed. The right to run hooks is not among them: it is in a role of its own, which only who asks for it gets. A run
// with a pending hook is patched: it gets a finalizer. One by hand gets its Backup as owner, which waits for it when it is deleted
// in the foreground: that takes the right to the finalizers of Backups. The claims that are made and deleted are those of volumes that are
// made from a snapshot.
//
// +kubebuilder:rbac:groups=slipway.dev,resources=backupruns,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=slipway.dev,resources=backupruns/status,verbs=get;patch
// +kubebuilder:rbac:groups=slipway.dev,resources=backupruns/finalizers,verbs=update
// +kubebuilder:rbac:groups=slipway.dev,resources=backups,verbs=get;list;watch
// +kubebuilder:rbac:groups=slipway.dev,resources=backups/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotclasses,verbs=list
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one BackupRun true and says how far it got.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.load(ctx, req.NamespacedName)
	now := r.kit.Clock.Now()
	switch {
	case err != nil:
		return r.kit.Abort(req.NamespacedName, err)
	case s == nil:
		r.admission.leave(req.NamespacedName, now)
		r.calls.Keep(req.NamespacedName, func(call) bool { return false })
		return r.kit.Forget(ctx, req.NamespacedName)
	}
	switch {
	case !s.run.DeletionTimestamp.IsZero():
		// Owner references delete the Jobs. The copy stays.
		r.admission.leave(req.NamespacedName, now)
		s.err = r.letGo(ctx, s, now)
		return r.kit.Conclude(ctx, req.NamespacedName, s.err, &s.recheck, func() error {
			return r.writeStatus(ctx, s, s.terminatingStatus(now))
		})
	case s.run.Ended():
		r.admission.leave(req.NamespacedName, now)
		s.err = errors.Join(r.tidy(ctx, s), r.finalizer.Remove(ctx, s.run), r.adoptEnded(ctx, s))
		return r.kit.Conclude(ctx, req.NamespacedName, s.err, &s.recheck, func() error { return nil })
	}

	r.runHooks(s, now)
	s.err = r.prepare(ctx, s)
	if s.err == nil && s.job.UID == "" {
		// A Job that there is may have made its copy.
		s.err = r.kit.Namespaces.Check(ctx, s.run)
	}
	if s.err == nil {
		s.err = r.wait(ctx, s, now)
	}
	if s.err == nil {
		s.err = r.transfer(ctx, s, now)
	}
	r.judge(ctx, s, now)
	r.release(ctx, s, now)
	r.yield(s)
	r.listen(ctx, s, now)
	if s.err == nil {
		s.err = r.tidy(ctx, s)
	}
	return r.kit.Conclude(ctx, req.NamespacedName, s.err, &s.recheck, func() error {
		return r.writeStatus(ctx, s, s.status(now))
	})
}

// writeStatus writes a status when it differs.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, next slipwayv1alpha1.BackupRunStatus) error {
	_, written, err := status.Update(ctx, r.kit.Statuses, s.run, &s.run.Status, next, withDetails, &s.recheck, s.children()...)
	if written && s.run.Ended() {
		r.metrics.observe(s.run)
		r.admission.leave(keyOf(s.run), r.kit.Clock.Now())
	}
	return err
}

// withDetails returns a status with the numbers and words of another one.
func withDetails(of, from slipwayv1alpha1.BackupRunStatus) slipwayv1alpha1.BackupRunStatus {
	of.Progress, of.Message, of.Summary = from.Progress, from.Message, from.Summary
	of.Conditions = status.WithMessagesOf(from.Conditions, of.Conditions)
	return of
}
