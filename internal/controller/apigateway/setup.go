package apigateway

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/replica"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/podevents"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

const (
	// indexAPIGateway finds pods and ReplicaSets by their APIGateway.
	indexAPIGateway = "slipway.dev/apigateway"
	// indexParent finds APIGateways by the Gateway they attach to, as namespace/name.
	indexParent = "slipway.dev/parent"

	// memory bounds what the reconciler remembers: entries of about 200 bytes.
	memory = 65536
	// checkMemory bounds the remembered checks: up to 100 KB each for 1,000 routes.
	checkMemory = 1024
)

// Options configures the controller.
type Options struct {
	// Image is what gateway pods run where the spec names no image. Required.
	Image string
	// AdminPort is where gateway pods say what they serve. Default: that of the pods that
	// the controller makes; a test may have others.
	AdminPort int
	// GatewayAPICache configures the cache of the Gateway API's kinds.
	GatewayAPICache cache.Options
	// MaxConcurrentReconciles is how many APIGateways are worked on at a time. Default:
	// outcome.DefaultConcurrency.
	MaxConcurrentReconciles int
	// Clock tells the time. Default: the system's.
	Clock clock.Clock
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	options = withDefaults(options)
	if err := addIndexes(mgr); err != nil {
		return err
	}
	follower := replica.New(replica.Options{Port: options.AdminPort, Clock: options.Clock})
	if err := mgr.Add(follower); err != nil {
		return fmt.Errorf("add what follows the gateway pods: %w", err)
	}
	registerMetrics(mgr.GetClient())
	r := newReconciler(mgr, options, follower)
	var err error
	if r.blockers, err = blocker.Setup(mgr); err != nil {
		return err
	}
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("apigateway").
		For(&slipwayv1alpha1.APIGateway{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&rbacv1.Role{}).
		Owns(&rbacv1.RoleBinding{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&autoscalingv2.HorizontalPodAutoscaler{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Owns(&networkingv1.Ingress{}).
		// Pods and ReplicaSets are owned by others.
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(apiGatewayOf)).
		WatchesMetadata(&appsv1.ReplicaSet{}, handler.EnqueueRequestsFromMapFunc(apiGatewayOf)).
		// Whose host it is changes with other APIGateways, before the change and after it.
		Watches(&slipwayv1alpha1.APIGateway{}, handler.EnqueueRequestsFromMapFunc(rivals(mgr.GetClient())),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(answersOf(follower)).
		WatchesRawSource(r.blockers.Source()).
		WithOptions(outcome.ControllerOptions(options.MaxConcurrentReconciles)).
		Build(r)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	r.gatewayAPI.watch = built.Watch
	if _, err := r.gatewayAPI.find(); err != nil {
		return err
	}
	if err := mgr.Add(r.gatewayAPI); err != nil {
		return fmt.Errorf("add what looks for the Gateway API: %w", err)
	}
	return nil
}

func withDefaults(options Options) Options {
	if options.AdminPort == 0 {
		options.AdminPort = desired.AdminPort
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return options
}

func newReconciler(mgr ctrl.Manager, options Options, replicas Replicas) *Reconciler {
	r := &Reconciler{
		client:    mgr.GetClient(),
		fresh:     apply.NewFreshness(mgr.GetClient(), mgr.GetAPIReader()),
		replicas:  replicas,
		clock:     options.Clock,
		image:     options.Image,
		checks:    lru.New(checkMemory),
		events:    podevents.NewReader(mgr.GetAPIReader(), options.Clock),
		conflicts: outcome.NewConflictBackoff(options.Clock),
		settling:  lru.New(memory),
	}
	recorder := mgr.GetEventRecorder(FieldManager)
	r.statuses = status.NewWriter(r.client, r.fresh, recorder, r.clock)
	r.applier = &apply.Applier{
		Client:       mgr.GetClient(),
		Live:         mgr.GetAPIReader(),
		FieldManager: FieldManager,
		Fresh:        r.fresh,
		Repaired:     status.Repaired(recorder),
	}
	r.gatewayAPI = &gatewayAPI{mgr: mgr, options: options.GatewayAPICache, fresh: r.fresh, repaired: r.applier.Repaired}
	return r
}

func addIndexes(mgr ctrl.Manager) error {
	replicaSet := &metav1.PartialObjectMetadata{}
	replicaSet.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	for _, index := range []struct {
		object client.Object
		name   string
		values client.IndexerFunc
	}{
		{&corev1.Pod{}, indexAPIGateway, labelIndex},
		{replicaSet, indexAPIGateway, labelIndex},
		{&slipwayv1alpha1.APIGateway{}, indexClaim, claimIndex},
		{&slipwayv1alpha1.APIGateway{}, indexParent, parentIndex},
	} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), index.object, index.name, index.values); err != nil { //nolint:forbidigo // registering an index is not part of a request
			return fmt.Errorf("index %T by %s: %w", index.object, index.name, err)
		}
	}
	return nil
}

func labelIndex(object client.Object) []string {
	if name := object.GetLabels()[slipwayv1alpha1.LabelAPIGateway]; name != "" {
		return []string{name}
	}
	return nil
}

// apiGatewayOf maps an object to the APIGateway that its label names.
func apiGatewayOf(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[slipwayv1alpha1.LabelAPIGateway]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// answersOf makes a change of what a pod says an event of its APIGateway.
func answersOf(follower *replica.Follower) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		follower.Notify(func(gateway types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: gateway}) })
		return nil
	})
}
