package apigateway

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

const (
	// indexAPIGateway finds pods and ReplicaSets by their APIGateway.
	indexAPIGateway = "slipway.dev/apigateway"
	// indexPullSecret finds APIGateways by the Secrets that their images are pulled with.
	indexPullSecret = "slipway.dev/apigateway-pull-secret"
	// indexParent finds APIGateways by the Gateway they attach to, as namespace/name.
	indexParent = "slipway.dev/parent"

	// checkMemory bounds the remembered checks: up to 100 KB each for 1,000 routes.
	checkMemory = 1024
)

// Options configures the controller.
type Options struct {
	// Image is what gateway pods run where the spec names no image. Required.
	Image string
	// Namespace is the operator's own: it has the records of whose a host is. Required.
	Namespace string
	// HTTPRouteGateways are the Gateways for which HTTPRoutes may be made: namespace/name, namespace/* or *. Default: none.
	HTTPRouteGateways []string
	// AdminPort is where gateway pods say what they serve. Default: that of the pods that
	// the controller makes; a test may have others.
	AdminPort int
	// GatewayAPI is what is kept in memory of the Gateway API's kinds.
	GatewayAPI optional.Budget
	// NewCache replaces the caches of these kinds. Default: controller-runtime's.
	NewCache cache.NewCacheFunc
	// MaxConcurrentReconciles is how many APIGateways are worked on at a time. Default:
	// outcome.DefaultConcurrency.
	MaxConcurrentReconciles int
	// NewQueue replaces the queue. Default: outcome.NewFairQueue.
	NewQueue outcome.NewQueue
	// Namespaces knows which namespaces are being deleted. Default: none.
	Namespaces *going.Namespaces
	// Clock tells the time. Default: the system's.
	Clock clock.Clock
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	options = withDefaults(options)
	if err := watch.AddIndexes(
		mgr,
		watch.Index{Object: &corev1.Pod{}, Name: indexAPIGateway, Values: watch.LabelIndex(slipwayv1alpha1.LabelAPIGateway)},
		watch.Index{Object: watch.ReplicaSet(), Name: indexAPIGateway, Values: watch.LabelIndex(slipwayv1alpha1.LabelAPIGateway)},
		watch.Index{Object: &slipwayv1alpha1.APIGateway{}, Name: indexClaim, Values: claimIndex},
		watch.Index{Object: &slipwayv1alpha1.APIGateway{}, Name: indexParent, Values: parentIndex},
		watch.Index{Object: &slipwayv1alpha1.APIGateway{}, Name: indexPullSecret, Values: pullSecretIndex},
		watch.Index{Object: &coordinationv1.Lease{}, Name: hosts.IndexHolder, Values: hosts.HolderIndex},
		watch.Index{Object: &coordinationv1.Lease{}, Name: hosts.IndexNamespace, Values: hosts.NamespaceIndex},
	); err != nil {
		return err
	}
	follower := replica.New(replica.Options{Port: options.AdminPort, Clock: options.Clock})
	if err := mgr.Add(follower); err != nil {
		return fmt.Errorf("add what follows the gateway pods: %w", err)
	}
	registerMetrics(mgr.GetCache())
	r := newReconciler(mgr, options, follower)
	r.kit.Namespaces = options.Namespaces
	var err error
	if r.kit.Blockers, err = blocker.Setup(mgr); err != nil {
		return err
	}
	if r.kit.Refusals.Watches, err = blocker.SetupChanges(mgr); err != nil {
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
		Watches(&corev1.Pod{}, watch.ByLabel(slipwayv1alpha1.LabelAPIGateway)).
		WatchesMetadata(&appsv1.ReplicaSet{}, watch.ByLabel(slipwayv1alpha1.LabelAPIGateway)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(ofQuotaSecret)).
		WatchesMetadata(&corev1.Secret{}, ofPullSecret(mgr.GetClient()), builder.WithPredicates(pullsecret.ComesOrGoes())).
		// Whose a host is.
		Watches(&coordinationv1.Lease{}, ofRecord(mgr.GetClient())).
		WatchesRawSource(watch.Notices(follower.Notify)).
		WatchesRawSource(r.kit.Blockers.Source()).
		WatchesRawSource(r.kit.Refusals.Watches.Source()).
		WatchesRawSource(options.Namespaces.Source(mgr.GetClient(), &slipwayv1alpha1.APIGatewayList{})).
		WithOptions(outcome.ControllerOptions(options.MaxConcurrentReconciles, options.NewQueue)).
		Build(r)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	if err := r.gatewayAPI.setup(mgr, options, built.Watch); err != nil {
		return fmt.Errorf("set up the Gateway API: %w", err)
	}
	return nil
}

func pullSecretIndex(object client.Object) []string {
	gateway, ok := object.(*slipwayv1alpha1.APIGateway)
	if !ok {
		return nil
	}
	return pullsecret.Names(gateway.Spec.ImagePullSecrets)
}

// ofPullSecret enqueues the APIGateways whose image is pulled with a Secret.
func ofPullSecret(reader client.Reader) handler.EventHandler {
	return watch.Referrers{
		Reader: reader, List: &slipwayv1alpha1.APIGatewayList{}, Index: indexPullSecret, SameNamespace: true,
		Values: func(object client.Object) []string { return []string{object.GetName()} },
	}.Handler()
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

func newReconciler(mgr ctrl.Manager, options Options, replicas replica.Replicas) *Reconciler {
	r := &Reconciler{
		kit: kit.New(mgr, kit.Options{FieldManager: FieldManager, Clock: options.Clock, News: status.News{
			Good: []string{slipwayv1alpha1.ConditionReady},
			Bad:  []string{slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionPullSecretMissing},
		}}),
		hosts:    &hosts.Book{Client: mgr.GetClient(), Namespace: options.Namespace},
		replicas: replicas,

		httpRouteGateways: options.HTTPRouteGateways,

		image:    options.Image,
		checks:   lru.New(checkMemory),
		settling: lru.New(kit.Memory),

		quotaSecrets: lru.New(kit.Memory),
	}
	r.gatewayAPI = &gatewayAPI{live: r.kit.Live, fresh: r.kit.Fresh, repaired: r.kit.Applier.Repaired}
	return r
}
