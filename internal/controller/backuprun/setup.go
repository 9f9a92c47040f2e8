package backuprun

import (
	"cmp"
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/background"
	"github.com/slipway-dev/slipway/internal/backup/hook"
	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/backup/podexec"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/finalizer"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

const (
	// indexRun finds Jobs and pods by their BackupRun.
	indexRun = "slipway.dev/backuprun"
	// indexBackup finds BackupRuns by their Backup.
	indexBackup = "slipway.dev/backup"
	// indexOpen finds BackupRuns that have not ended, by their Backup.
	indexOpen = "slipway.dev/open-backup"
	// indexSecret finds Backups by the Secrets that their pods mount.
	indexSecret = "slipway.dev/backup-secret"
)

// DefaultMaxRuns is how many runs have a pod at a time.
const DefaultMaxRuns = 10

// Options configures the controller.
type Options struct {
	// Image is that of slipway-backup. Required.
	Image string
	// MaxRuns is how many places there are for runs that have a pod, in the whole cluster: queue says who gets them. Default:
	// DefaultMaxRuns.
	MaxRuns int
	// Limited reports whether the operator has rights in some namespaces only: it may not read what is in none, as PersistentVolumes
	// are. Then no snapshots of volumes are taken.
	Limited bool
	// MaxConcurrentReconciles is how many BackupRuns are worked on at a time. Default: outcome.DefaultConcurrency.
	MaxConcurrentReconciles int
	// NewQueue replaces the queue. Default: outcome.NewFairQueue.
	NewQueue outcome.NewQueue
	// Hooks lets it run the hooks of Backups in pods. It needs rights of its own. Default false.
	Hooks bool
	// Exec replaces how hooks are run, as a test does. Default: by the API server.
	Exec Execer
	// Serial is that of all controllers of this process that make Jobs for a repository. Default: its own, for a test that runs
	// this controller alone.
	Serial *lock.Serial
	// Namespaces knows which namespaces are being deleted. Default: none.
	Namespaces *going.Namespaces
	// Clock tells the time. Default: the system's.
	Clock clock.PassiveClock
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	if err := watch.AddIndexes(
		mgr,
		watch.Index{Object: &batchv1.Job{}, Name: indexRun, Values: watch.LabelIndex(slipwayv1alpha1.LabelBackupRun)},
		watch.Index{Object: &corev1.Pod{}, Name: indexRun, Values: watch.LabelIndex(slipwayv1alpha1.LabelBackupRun)},
		watch.Index{Object: &slipwayv1alpha1.BackupRun{}, Name: indexBackup, Values: backupIndex},
		watch.Index{Object: &slipwayv1alpha1.BackupRun{}, Name: indexOpen, Values: openIndex},
		watch.Index{Object: &slipwayv1alpha1.Backup{}, Name: indexSecret, Values: secretIndex},
	); err != nil {
		return err
	}
	reconciler, err := NewReconciler(mgr, options)
	if err != nil {
		return err
	}
	reconciler.kit.Namespaces = options.Namespaces
	if err := mgr.Add(reconciler.calls); err != nil {
		return fmt.Errorf("add what runs hooks: %w", err)
	}
	// A run waits for the one before it, for its Backup, and for the Secrets that this names.
	open := watch.Referrers{Reader: mgr.GetClient(), List: &slipwayv1alpha1.BackupRunList{}, Index: indexOpen, SameNamespace: true}
	ofRun, ofBackup := open, open
	ofRun.Values = backupIndex
	ofBackup.Values = func(object client.Object) []string { return []string{object.GetName()} }
	return ctrl.NewControllerManagedBy(mgr).
		Named("backuprun").
		For(&slipwayv1alpha1.BackupRun{}).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, watch.ByLabel(slipwayv1alpha1.LabelBackupRun)).
		Watches(&slipwayv1alpha1.BackupRun{}, ofRun.Handler()).
		Watches(&slipwayv1alpha1.Backup{}, ofBackup.Handler()).
		WatchesMetadata(&corev1.Secret{}, ofSecret(mgr.GetClient(), ofBackup)).
		WatchesRawSource(watch.Notices(reconciler.admission.notify)).
		WatchesRawSource(watch.Notices(reconciler.calls.Notify)).
		WatchesRawSource(options.Namespaces.Source(mgr.GetClient(), &slipwayv1alpha1.BackupRunList{})).
		WithOptions(outcome.ControllerOptions(options.MaxConcurrentReconciles, options.NewQueue)).
		Complete(reconciler)
}

// NewReconciler returns the reconciler alone. It reads through the manager's cache, which Setup has given the indexes that
// the reconciler needs.
func NewReconciler(mgr ctrl.Manager, options Options) (*Reconciler, error) {
	clients, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for logs: %w", err)
	}
	// VolumeSnapshots, and the claims of volumes that are made from them, are in no cache. A client that has a cache would start
	// a watch when it writes one.
	direct, err := client.New(mgr.GetConfig(),
		client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if options.MaxRuns == 0 {
		options.MaxRuns = DefaultMaxRuns
	}
	var exec Execer
	if options.Hooks {
		exec = options.Exec
		if exec == nil {
			exec = podexec.New(mgr.GetConfig(), clients)
		}
	}
	tools := kit.New(mgr, kit.Options{FieldManager: FieldManager, Clock: options.Clock, News: status.News{
		Good: []string{slipwayv1alpha1.ConditionReady},
		Bad:  []string{slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionHookAfterFailed},
	}})
	return &Reconciler{
		kit:        tools,
		references: transfer.NewReferences(tools.Client, tools.Live),
		moves:      transfer.NewJobs(tools.Live, tools.Clock),
		writers: lock.Writers{
			Applier: tools.Applier, Live: tools.Live, Clock: tools.Clock, Serial: cmp.Or(options.Serial, &lock.Serial{}),
		},
		exec:  exec,
		calls: background.New[call, hook.Ended](maxCalls, maxCallsPerNamespace),
		finalizer: finalizer.Finalizer{
			Client: mgr.GetClient(), Name: finalizerHooks, LetGo: slipwayv1alpha1.AnnotationLeaveHooks, Limit: holdLimit,
		},
		staging:   &apply.Applier{Client: direct, Live: direct, FieldManager: FieldManager, Fresh: tools.Fresh},
		metrics:   newMetrics(mgr.GetCache()),
		image:     options.Image,
		admission: newAdmission(options.MaxRuns),
		limited:   options.Limited,
		logs:      transfer.PodLogs{Client: clients},
	}, nil
}

func backupIndex(object client.Object) []string {
	run, ok := object.(*slipwayv1alpha1.BackupRun)
	if !ok {
		return nil
	}
	return []string{run.Spec.Backup}
}

func openIndex(object client.Object) []string {
	if run, ok := object.(*slipwayv1alpha1.BackupRun); ok && !run.Ended() {
		return []string{run.Spec.Backup}
	}
	return nil
}

func secretIndex(object client.Object) []string {
	backup, ok := object.(*slipwayv1alpha1.Backup)
	if !ok {
		return nil
	}
	return []string{backup.EncryptionSecret(), backup.CredentialsSecret()}
}

// ofSecret enqueues the runs whose Backup names a Secret.
func ofSecret(reader client.Reader, runs watch.Referrers) handler.EventHandler {
	backups := watch.Referrers{
		Reader: reader, List: &slipwayv1alpha1.BackupList{}, Index: indexSecret, SameNamespace: true,
		Values: func(object client.Object) []string { return []string{object.GetName()} },
	}
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, secret client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, backup := range backups.Map(ctx, secret) {
			named := &slipwayv1alpha1.Backup{}
			named.Name, named.Namespace = backup.Name, backup.Namespace
			requests = append(requests, runs.Map(ctx, named)...)
		}
		return requests
	})
}
