package webapp

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/kit/contentkey"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

const (
	// indexWebApp finds pods, ReplicaSets and ControllerRevisions by their WebApp.
	indexWebApp = "slipway.dev/webapp"
	// indexConfig finds WebApps by the Secrets and ConfigMaps they name, as Kind/name.
	indexConfig = "slipway.dev/config"
)

// Options configures the controller.
type Options struct {
	// MaxConcurrentReconciles is how many WebApps are worked on at a time. Default:
	// outcome.DefaultConcurrency.
	MaxConcurrentReconciles int
	// NewQueue replaces the queue. Default: outcome.NewFairQueue.
	NewQueue outcome.NewQueue
	// Keys keys hashes of the content of Secrets and ConfigMaps. Required, unless no WebApp
	// refers to any.
	Keys contentkey.Keys
	// Namespaces knows which namespaces are being deleted. Default: none.
	Namespaces *going.Namespaces
	// Clock tells the time. Default: the system's.
	Clock clock.PassiveClock
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	if err := watch.AddIndexes(
		mgr,
		watch.Index{Object: &corev1.Pod{}, Name: indexWebApp, Values: watch.LabelIndex(slipwayv1alpha1.LabelWebApp)},
		watch.Index{Object: &appsv1.ControllerRevision{}, Name: indexWebApp, Values: watch.LabelIndex(slipwayv1alpha1.LabelWebApp)},
		watch.Index{Object: watch.ReplicaSet(), Name: indexWebApp, Values: watch.LabelIndex(slipwayv1alpha1.LabelWebApp)},
		watch.Index{Object: &slipwayv1alpha1.WebApp{}, Name: indexConfig, Values: configIndex},
	); err != nil {
		return err
	}
	reconciler := NewReconciler(mgr, options)
	reconciler.kit.Namespaces = options.Namespaces
	var err error
	if reconciler.kit.Blockers, err = blocker.Setup(mgr); err != nil {
		return err
	}
	if reconciler.kit.Refusals.Watches, err = blocker.SetupChanges(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("webapp").
		For(&slipwayv1alpha1.WebApp{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&autoscalingv2.HorizontalPodAutoscaler{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Owns(&appsv1.ControllerRevision{}).
		// A retained volume has no owner; pods and ReplicaSets are owned by others.
		Watches(&corev1.PersistentVolumeClaim{}, watch.ByLabel(slipwayv1alpha1.LabelWebApp)).
		Watches(&corev1.Pod{}, watch.ByLabel(slipwayv1alpha1.LabelWebApp)).
		WatchesMetadata(&appsv1.ReplicaSet{}, watch.ByLabel(slipwayv1alpha1.LabelWebApp)).
		WatchesMetadata(&corev1.Secret{}, referrers(mgr.GetClient(), "Secret")).
		WatchesMetadata(&corev1.ConfigMap{}, referrers(mgr.GetClient(), "ConfigMap")).
		WatchesRawSource(reconciler.kit.Blockers.Source()).
		WatchesRawSource(reconciler.kit.Refusals.Watches.Source()).
		WatchesRawSource(options.Namespaces.Source(mgr.GetClient(), &slipwayv1alpha1.WebAppList{})).
		WithOptions(outcome.ControllerOptions(options.MaxConcurrentReconciles, options.NewQueue)).
		Complete(reconciler)
}

// NewReconciler returns the reconciler alone. It reads through the manager's cache,
// which Setup has given the indexes that the reconciler needs.
func NewReconciler(mgr ctrl.Manager, options Options) *Reconciler {
	return &Reconciler{
		kit: kit.New(mgr, kit.Options{FieldManager: FieldManager, Clock: options.Clock, News: status.News{
			Good: []string{slipwayv1alpha1.ConditionReady},
			Bad: []string{
				slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionRolledBack,
				slipwayv1alpha1.ConditionPullSecretMissing,
			},
		}}),
		metrics: newMetrics(mgr.GetCache()),
		digests: lru.New(kit.Memory),
		keys:    options.Keys,
		names:   newNames(),
	}
}

func configIndex(object client.Object) []string {
	app, ok := object.(*slipwayv1alpha1.WebApp)
	if !ok {
		return nil
	}
	var names []string
	for _, ref := range configRefs(app.Spec) {
		names = append(names, ref.kind+"/"+ref.name)
	}
	for _, name := range pullsecret.Names(app.Spec.ImagePullSecrets) {
		names = append(names, "Secret/"+name)
	}
	return names
}

// referrers enqueues the WebApps that refer to a Secret or ConfigMap.
func referrers(reader client.Reader, kind string) handler.EventHandler {
	return watch.Referrers{
		Reader: reader, List: &slipwayv1alpha1.WebAppList{}, Index: indexConfig, SameNamespace: true,
		Values: func(object client.Object) []string { return []string{kind + "/" + object.GetName()} },
	}.Handler()
}
