package backup

import (
	"cmp"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/finalizer"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

const (
	// indexBackup finds Jobs, pods and BackupRuns by the Backup that their label names.
	indexBackup = "slipway.dev/of-backup"
	// indexSecret and indexConfigMap find Backups by the Secrets and ConfigMaps that they name, and indexNamed by everything else.
	indexSecret    = "slipway.dev/backup-names-secret"
	indexConfigMap = "slipway.dev/backup-names-configmap"
	indexNamed     = "slipway.dev/backup-names"
)

// finalizerName holds a Backup whose repository is to be deleted, and letGo is the annotation that gives that up.
const (
	finalizerName = "slipway.dev/backup"
	letGo         = "slipway.dev/leave-repository"
	// deleteLimit is how long deleting a repository may hold a Backup, and its namespace.
	deleteLimit = time.Hour
)

// Options configures the controller.
type Options struct {
	// Image is that of slipway-backup. Required.
	Image string
	// Hooks reports whether the operator runs hooks. Default false: a Backup with hooks makes no run, and says so.
	Hooks bool
	// Named reads, as metadata, the kinds of what Backups name and others make. Required. Whoever makes it sets it up.
	Named *optional.Kinds
	// MaxConcurrentReconciles is how many Backups are worked on at a time. Default: outcome.DefaultConcurrency.
	MaxConcurrentReconciles int
	// NewQueue replaces the queue. Default: outcome.NewFairQueue.
	NewQueue outcome.NewQueue
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
	ofLabel := watch.LabelIndex(slipwayv1alpha1.LabelBackup)
	if err := watch.AddIndexes(
		mgr,
		watch.Index{Object: &batchv1.Job{}, Name: indexBackup, Values: ofLabel},
		watch.Index{Object: &corev1.Pod{}, Name: indexBackup, Values: ofLabel},
		watch.Index{Object: &slipwayv1alpha1.BackupRun{}, Name: indexBackup, Values: runIndex},
		watch.Index{Object: &slipwayv1alpha1.Backup{}, Name: indexSecret, Values: configIndex(false)},
		watch.Index{Object: &slipwayv1alpha1.Backup{}, Name: indexConfigMap, Values: configIndex(true)},
		watch.Index{Object: &slipwayv1alpha1.Backup{}, Name: indexNamed, Values: namedIndex},
	); err != nil {
		return err
	}
	naming := func(index string) handler.EventHandler {
		return watch.Referrers{
			Reader: mgr.GetClient(), List: &slipwayv1alpha1.BackupList{}, Index: index, SameNamespace: true,
			Values: func(object client.Object) []string { return []string{object.GetName()} },
		}.Handler()
	}
	reconciler := NewReconciler(mgr, options)
	reconciler.kit.Namespaces = options.Namespaces
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("backup").
		For(&slipwayv1alpha1.Backup{}).
		Owns(&batchv1.Job{}).
		// A run by hand has no owner.
		Watches(&slipwayv1alpha1.BackupRun{}, watch.By(func(object client.Object) string {
			if run, ok := object.(*slipwayv1alpha1.BackupRun); ok {
				return run.Spec.Backup
			}
			return ""
		})).
		Watches(&corev1.Pod{}, watch.ByLabel(slipwayv1alpha1.LabelBackup)).
		WatchesMetadata(&corev1.Secret{}, naming(indexSecret)).
		WatchesMetadata(&corev1.ConfigMap{}, naming(indexConfigMap)).
		WatchesRawSource(options.Namespaces.Source(mgr.GetClient(), &slipwayv1alpha1.BackupList{})).
		WithOptions(outcome.ControllerOptions(options.MaxConcurrentReconciles, options.NewQueue)).
		Build(reconciler)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	if err := reconciler.watchNamed(mgr.GetClient(), built.Watch); err != nil {
		return fmt.Errorf("watch what Backups name: %w", err)
	}
	return nil
}

// NewReconciler returns the reconciler alone. It reads through the manager's cache, which Setup has given the indexes that
// the reconciler needs.
func NewReconciler(mgr ctrl.Manager, options Options) *Reconciler {
	tools := kit.New(mgr, kit.Options{FieldManager: FieldManager, Clock: options.Clock, News: status.News{
		Good: []string{slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionDrillPassed},
		Bad:  []string{slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionPullSecretMissing},
	}})
	return &Reconciler{
		kit:        tools,
		templates:  templates{live: tools.Live, known: lru.New(kit.Memory)},
		references: transfer.NewReferences(tools.Client, tools.Live),
		named:      options.Named,
		moves:      transfer.NewJobs(tools.Live, tools.Clock),
		writers: lock.Writers{
			Applier: tools.Applier, Live: tools.Live, Clock: tools.Clock, Serial: cmp.Or(options.Serial, &lock.Serial{}),
		},
		metrics:   newMetrics(mgr.GetCache()),
		image:     options.Image,
		hooks:     options.Hooks,
		finalizer: finalizer.Finalizer{Client: mgr.GetClient(), Name: finalizerName, LetGo: letGo, Limit: deleteLimit},
	}
}

func runIndex(object client.Object) []string {
	run, ok := object.(*slipwayv1alpha1.BackupRun)
	if !ok {
		return nil
	}
	return []string{run.Spec.Backup}
}
