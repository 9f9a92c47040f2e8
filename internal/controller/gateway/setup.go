package gateway

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// Options configures the controllers.
type Options struct {
	// Image is what gateway pods run. Required.
	Image string
	// ServiceType is that of every Gateway's Service. Default: LoadBalancer.
	ServiceType corev1.ServiceType
	// AdminPort is where gateway pods say what they serve. Default: that of the pods that the controller makes; a test may
	// have others.
	AdminPort int
	// Namespaces are the ones to which operator and pods are limited. Empty: they work in all. Another value than that of the budget
	// is for tests, whose operators have the rights of one for all namespaces.
	Namespaces []string
	// Budget is what is kept in memory of the Gateway API.
	Budget Budget
	// MaxConcurrentReconciles is how many objects are worked on at a time.
	MaxConcurrentReconciles int
	// NewQueue replaces the queue. Default: outcome.NewFairQueue.
	NewQueue outcome.NewQueue
	// NewCache replaces the caches of the kinds of the Gateway API. Default: controller-runtime's.
	NewCache cache.NewCacheFunc
	// Going knows which namespaces are being deleted. Default: none.
	Going *going.Namespaces
	// Clock tells the time. Default: the system's.
	Clock clock.Clock
}

// limited reports whether there are no rights outside of some namespaces, but for GatewayClasses.
func (o Options) limited() bool { return len(o.Namespaces) > 0 }

// SetupClass registers the controller of GatewayClasses with the manager.
func SetupClass(mgr ctrl.Manager, options Options) error {
	classes, err := newClasses(mgr, options)
	if err != nil {
		return err
	}
	r := &ClassReconciler{
		kit: kit.New(mgr, kit.Options{FieldManager: FieldManager, Clock: options.Clock}), classes: classes,
		parameters: newParameters(mgr, options), limited: options.limited(),
	}
	if r.kit.Blockers, err = blocker.Setup(mgr); err != nil {
		return err
	}
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("gatewayclass").
		Watches(&slipwayv1alpha1.GatewayParameters{}, handler.EnqueueRequestsFromMapFunc(classesOf(classes)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(r.kit.Blockers.Source()).
		WithOptions(outcome.ControllerOptions(options.MaxConcurrentReconciles, options.NewQueue)).
		Build(r)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	if err := classes.Watch(built.Watch, &gatewayv1.GatewayClass{}, &handler.EnqueueRequestForObject{}); err != nil {
		return err
	}
	return classes.Setup()
}

// Setup registers the controller of Gateways with the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	options = withDefaults(options)
	known, err := newKinds(mgr, options)
	if err != nil {
		return err
	}
	if err := addIndexes(mgr, known); err != nil {
		return err
	}
	follower := replica.New(replica.Options{Port: options.AdminPort, Clock: options.Clock})
	if err := mgr.Add(follower); err != nil {
		return fmt.Errorf("add what follows the gateway pods: %w", err)
	}
	r := newReconciler(mgr, options, known, follower)
	if r.kit.Blockers, err = blocker.Setup(mgr); err != nil {
		return err
	}
	if r.kit.Refusals.Watches, err = blocker.SetupChanges(mgr); err != nil {
		return err
	}
	r.kit.Namespaces = options.Going
	registerMetrics(known, r.owned)
	find := mapper{reader: known.objects}
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &gatewayv1.Gateway{}, handler.OnlyControllerOwner())
	running := find.gateways(indexGateway, true, func(object client.Object) []string {
		return watch.LabelIndex(gatewayv1.GatewayNameLabelKey)(object)
	})
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("gateway").
		Watches(&corev1.ServiceAccount{}, owner).
		Watches(&rbacv1.Role{}, owner).
		Watches(&rbacv1.RoleBinding{}, owner).
		Watches(&appsv1.Deployment{}, owner).
		Watches(&corev1.Service{}, owner).
		Watches(&policyv1.PodDisruptionBudget{}, owner).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, owner).
		Watches(&slipwayv1alpha1.GatewayParameters{}, handler.EnqueueRequestsFromMapFunc(find.ofParameters(known.classes)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// Where there are pods of a Gateway, there was a class of ours.
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			if object.GetLabels()[gatewayv1.GatewayNameLabelKey] != "" {
				known.objects.Begin()
			}
			return nil
		})).
		// Pods and ReplicaSets are owned by others.
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(running)).
		WatchesMetadata(&appsv1.ReplicaSet{}, handler.EnqueueRequestsFromMapFunc(running)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(find.ofSecret)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(ofPullSecret(find, known, mgr.GetClient())), builder.WithPredicates(pullsecret.ComesOrGoes())).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(find.ofBundle)).
		WatchesRawSource(watch.Notices(follower.Notify)).
		WatchesRawSource(r.kit.Blockers.Source()).
		WatchesRawSource(r.kit.Refusals.Watches.Source()).
		WatchesRawSource(options.Going.Source(known.objects, &gatewayv1.GatewayList{})).
		WithOptions(outcome.ControllerOptions(options.MaxConcurrentReconciles, options.NewQueue)).
		Build(r)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	if err := errors.Join(watchObjects(built.Watch, options, known, find), setupRights(mgr, options, known, r), setupOrphans(mgr, options, r), setupTargets(mgr, options, r)); err != nil {
		return err
	}
	return known.start()
}

// watchObjects tells the controller of the kinds that a cluster need not have.
func watchObjects(to func(source.Source) error, options Options, known *kinds, find mapper) error {
	through := handler.EnqueueRequestsFromMapFunc
	gateways := find.gateways(indexClass, false, func(object client.Object) []string { return []string{object.GetName()} })
	classes := func(ctx context.Context, object client.Object) []reconcile.Request {
		if class, ok := object.(*gatewayv1.GatewayClass); ok && class.Spec.ControllerName == Controller {
			known.objects.Begin()
		}
		return gateways(ctx, object)
	}
	var namespaces error
	if !options.limited() {
		namespaces = known.objects.Watch(to, Namespace(), through(find.ofNamespace), predicate.LabelChangedPredicate{})
	}
	return errors.Join(
		namespaces,
		known.classes.Watch(to, &gatewayv1.GatewayClass{}, through(classes), predicate.GenerationChangedPredicate{}),
		known.objects.Watch(to, &gatewayv1.Gateway{}, &handler.EnqueueRequestForObject{}),
		known.objects.Watch(to, &gatewayv1.ListenerSet{}, through(find.ofSet)),
		known.watchRoutes(to, through(find.ofRoute)),
		known.objects.Watch(to, &gatewayv1.ReferenceGrant{}, through(find.ofGrant), predicate.GenerationChangedPredicate{}),
		known.objects.Watch(to, &gatewayv1beta1.ReferenceGrant{}, through(find.ofGrant), predicate.GenerationChangedPredicate{}),
		known.objects.Watch(to, &gatewayv1.BackendTLSPolicy{}, through(find.ofPolicy)),
		known.objects.Watch(to, &slipwayv1alpha1.GatewayPolicy{}, through(find.ofGatewayPolicy)),
		known.objects.Watch(to, &corev1.Service{}, through(find.ofService), portsChanged()),
	)
}

// portsChanged keeps out what does not matter of Services, which have no generation.
func portsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Service)
		after, also := e.ObjectNew.(*corev1.Service)
		return !ok || !also || !reflect.DeepEqual(serviceOf(before), serviceOf(after))
	}}
}

func addIndexes(mgr ctrl.Manager, known *kinds) error {
	label := watch.LabelIndex(gatewayv1.GatewayNameLabelKey)
	err := watch.AddIndexes(mgr,
		watch.Index{Object: &corev1.Pod{}, Name: indexGateway, Values: label},
		watch.Index{Object: watch.ReplicaSet(), Name: indexGateway, Values: label},
		watch.Index{Object: &slipwayv1alpha1.GatewayParameters{}, Name: indexPullSecret, Values: pullSecretIndex})
	if err != nil {
		return err
	}
	gateway := &gatewayv1.Gateway{}
	errs := []error{
		known.objects.Index(gateway, indexGateway, labelIndex),
		known.objects.Index(gateway, indexClass, classIndex),
		known.objects.Index(gateway, indexParameters, parametersIndex),
		known.objects.Index(gateway, indexSecret, secretIndex),
		known.objects.Index(gateway, indexBundle, bundleIndex),
		known.objects.Index(&gatewayv1.BackendTLSPolicy{}, indexBundle, bundleIndex),
		known.objects.Index(&slipwayv1alpha1.GatewayPolicy{}, indexSecret, secretIndex),
		known.objects.Index(&slipwayv1alpha1.GatewayPolicy{}, indexBackend, backendIndex),
		known.objects.Index(&gatewayv1.ListenerSet{}, indexParent, parentIndex),
		known.objects.Index(&gatewayv1.ListenerSet{}, indexSecret, secretIndex),
	}
	for _, route := range routeKinds() {
		errs = append(errs,
			known.objects.Index(route, indexParent, parentIndex),
			known.objects.Index(route, indexEntry, entryIndex),
			known.objects.Index(route, indexBackend, backendIndex))
	}
	return errors.Join(errs...)
}

func withDefaults(options Options) Options {
	if options.AdminPort == 0 {
		options.AdminPort = desired.AdminPort
	}
	if options.ServiceType == "" {
		options.ServiceType = corev1.ServiceTypeLoadBalancer
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return options
}

func newReconciler(mgr ctrl.Manager, options Options, known *kinds, replicas replica.Replicas) *Reconciler {
	tools := kit.New(mgr, kit.Options{FieldManager: FieldManager, Clock: options.Clock})
	return &Reconciler{
		kit: tools, kinds: known, owned: owned{kinds: known, children: mgr.GetClient()}, given: newParameters(mgr, options), replicas: replicas,
		image: options.Image, serviceType: options.ServiceType, namespaces: slices.Sorted(slices.Values(options.Namespaces)),
		pace:         &pace{clock: options.Clock, rests: lru.New(kit.Memory)},
		certificates: lru.New(kit.Memory), bundles: lru.New(kit.Memory), credentials: lru.New(kit.Memory), copied: lru.New(kit.Memory), granted: lru.New(kit.Memory), confirmed: lru.New(kit.Memory), silent: lru.New(kit.Memory), settling: lru.New(kit.Memory), counted: lru.New(kit.Memory),
	}
}
