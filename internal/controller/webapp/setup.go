package webapp

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/podevents"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

const (
	// indexWebApp finds pods, ReplicaSets and ControllerRevisions by their WebApp.
	indexWebApp = "slipway.dev/webapp"
	// indexConfig finds WebApps by the Secrets and ConfigMaps they refer to, as Kind/name.
	indexConfig = "slipway.dev/config"

	// memory bounds what the reconciler remembers: entries of about 200 bytes.
	memory = 65536
)

// Options configures the controller.
type Options struct {
	// MaxConcurrentReconciles is how many WebApps are worked on at a time. Default:
	// outcome.DefaultConcurrency.
	MaxConcurrentReconciles int
	// Clock tells the time. Default: the system's.
	Clock clock.PassiveClock
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	if err := addIndexes(mgr); err != nil {
		return err
	}
	reconciler := NewReconciler(mgr, options)
	var err error
	if reconciler.blockers, err = blocker.Setup(mgr); err != nil {
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
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(webAppOf)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(webAppOf)).
		WatchesMetadata(&appsv1.ReplicaSet{}, handler.EnqueueRequestsFromMapFunc(webAppOf)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(referrers(mgr.GetClient(), "Secret"))).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(referrers(mgr.GetClient(), "ConfigMap"))).
		WatchesRawSource(reconciler.blockers.Source()).
		WithOptions(outcome.ControllerOptions(options.MaxConcurrentReconciles)).
		Complete(reconciler)
}

// NewReconciler returns the reconciler alone. It reads through the manager's cache,
// which Setup has given the indexes that the reconciler needs.
func NewReconciler(mgr ctrl.Manager, options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	r := &Reconciler{
		client:    mgr.GetClient(),
		live:      mgr.GetAPIReader(),
		clock:     options.Clock,
		metrics:   newMetrics(mgr.GetClient()),
		digests:   lru.New(memory),
		events:    podevents.NewReader(mgr.GetAPIReader(), options.Clock),
		conflicts: outcome.NewConflictBackoff(options.Clock),
		names:     newNames(),
		fresh:     apply.NewFreshness(mgr.GetClient(), mgr.GetAPIReader()),
	}
	recorder := mgr.GetEventRecorder(FieldManager)
	r.statuses = status.NewWriter(r.client, r.fresh, recorder, r.clock)
	r.warn = status.Warn(recorder)
	r.applier = &apply.Applier{
		Client:       mgr.GetClient(),
		Live:         mgr.GetAPIReader(),
		FieldManager: FieldManager,
		Fresh:        r.fresh,
		Repaired:     status.Repaired(recorder),
	}
	return r
}

func addIndexes(mgr ctrl.Manager) error {
	replicaSet := &metav1.PartialObjectMetadata{}
	replicaSet.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	for _, object := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}, replicaSet} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), object, indexWebApp, labelIndex); err != nil { //nolint:forbidigo // registering an index is not part of a request
			return fmt.Errorf("index %T by WebApp: %w", object, err)
		}
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &slipwayv1alpha1.WebApp{}, indexConfig, configIndex); err != nil { //nolint:forbidigo // as above
		return fmt.Errorf("index WebApps by their Secrets and ConfigMaps: %w", err)
	}
	return nil
}

func labelIndex(object client.Object) []string {
	if name := object.GetLabels()[slipwayv1alpha1.LabelWebApp]; name != "" {
		return []string{name}
	}
	return nil
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
	return names
}

// webAppOf maps an object to the WebApp that its label names.
func webAppOf(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[slipwayv1alpha1.LabelWebApp]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// referrers maps a Secret or ConfigMap to the WebApps that refer to it.
func referrers(reader client.Reader, kind string) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		apps := &slipwayv1alpha1.WebAppList{}
		err := reader.List(ctx, apps, client.InNamespace(object.GetNamespace()),
			client.MatchingFields{indexConfig: kind + "/" + object.GetName()},
			client.DisableReadYourWritesConsistency)
		if err != nil {
			// The cache is being stopped: the restarted operator looks at everything.
			return nil
		}
		requests := make([]reconcile.Request, 0, len(apps.Items))
		for i := range apps.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&apps.Items[i])})
		}
		return requests
	}
}
