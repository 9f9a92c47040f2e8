package restore

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

const (
	// indexRestore finds Jobs and pods by their Restore.
	indexRestore = "slipway.dev/restore"
	// indexOpen finds Restores that have not ended, by their namespace: what they wait for may be any object in it.
	indexOpen = "slipway.dev/open-restore"
)

// Options configures the controller.
type Options struct {
	// Image is that of slipway-backup. Required.
	Image string
	// Named reads, as metadata, the kinds of what Restores name and others make. Required. Whoever makes it sets it up.
	Named *optional.Kinds
	// MaxConcurrentReconciles is how many Restores are worked on at a time. Default: outcome.DefaultConcurrency.
	MaxConcurrentReconciles int
	// NewQueue replaces the queue. Default: outcome.NewFairQueue.
	NewQueue outcome.NewQueue
	// Namespaces knows which namespaces are being deleted. Default: none.
	Namespaces *going.Namespaces
	// Clock tells the time. Default: the system's.
	Clock clock.PassiveClock
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	if err := watch.AddIndexes(
		mgr,
		watch.Index{Object: &batchv1.Job{}, Name: indexRestore, Values: watch.LabelIndex(slipwayv1alpha1.LabelRestore)},
		watch.Index{Object: &corev1.Pod{}, Name: indexRestore, Values: watch.LabelIndex(slipwayv1alpha1.LabelRestore)},
		watch.Index{Object: &slipwayv1alpha1.Restore{}, Name: indexOpen, Values: openIndex},
	); err != nil {
		return err
	}
	reconciler, err := NewReconciler(mgr, options)
	if err != nil {
		return err
	}
	reconciler.kit.Namespaces = options.Namespaces
	open := watch.Referrers{
		Reader: mgr.GetClient(), List: &slipwayv1alpha1.RestoreList{}, Index: indexOpen, SameNamespace: true,
		Values: func(client.Object) []string { return []string{open} },
	}.Handler()
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("restore").
		For(&slipwayv1alpha1.Restore{}).
		Owns(&batchv1.Job{}).
		Watches(&batchv1.Job{}, open). // one of another Restore, to the same volume
		Watches(&corev1.Pod{}, watch.ByLabel(slipwayv1alpha1.LabelRestore)).
		Watches(&slipwayv1alpha1.Backup{}, open).
		Watches(&slipwayv1alpha1.BackupRun{}, open).
		WatchesMetadata(&corev1.Secret{}, open).
		WatchesRawSource(options.Namespaces.Source(mgr.GetClient(), &slipwayv1alpha1.RestoreList{})).
		WithOptions(outcome.ControllerOptions(options.MaxConcurrentReconciles, options.NewQueue)).
		Build(reconciler)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	if err := reconciler.watchNamed(mgr.GetClient(), built.Watch); err != nil {
		return fmt.Errorf("watch what Restores name: %w", err)
	}
	return nil
}

// open is what the index says of a Restore that has not ended.
const open = "true"

func openIndex(object client.Object) []string {
	if restore, ok := object.(*slipwayv1alpha1.Restore); ok && !restore.Ended() {
		return []string{open}
	}
	return nil
}

// NewReconciler returns the reconciler alone. It reads through the manager's cache, which Setup has given the indexes that
// the reconciler needs.
func NewReconciler(mgr ctrl.Manager, options Options) (*Reconciler, error) {
	clients, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for logs: %w", err)
	}
	tools := kit.New(mgr, kit.Options{FieldManager: FieldManager, Clock: options.Clock, News: status.News{
		Good: []string{slipwayv1alpha1.ConditionReady},
		Bad: []string{
			slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionOwnersNotKept, slipwayv1alpha1.ConditionPullSecretMissing,
		},
	}})
	return &Reconciler{
		kit:        tools,
		named:      options.Named,
		references: transfer.NewReferences(tools.Client, tools.Live),
		moves:      transfer.NewJobs(tools.Live, tools.Clock),
		metrics:    newMetrics(mgr.GetCache()),
		image:      options.Image,
		logs:       transfer.PodLogs{Client: clients},
		writers:    lock.Writers{Applier: tools.Applier, Live: tools.Live, Clock: tools.Clock, Serial: &lock.Serial{}},
	}, nil
}
