package gateway

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// FieldManager owns the fields that this controller states.
const FieldManager = "slipway-gateway"

var _ reconcile.Reconciler = (*Reconciler)(nil)

// Reconciler makes Gateways true.
type Reconciler struct {
	// kit is what it has in common with the reconcilers of other kinds.
	kit *kit.Tools
	// kinds are those of the Gateway API.
	kinds *kinds
	// owned tells which Gateways are ours.
	owned owned
	// given reads parameters.
	given parameters
	// replicas knows what the pods serve.
	replicas replica.Replicas
	// image is what the pods run.
	image string
	// serviceType is that of every Gateway's Service.
	serviceType corev1.ServiceType
	// namespaces are the ones to which operator and pods are limited, in order. Empty: they work in all.
	namespaces []string

	// certificates remembers which Secrets were valid, by name. Losing it costs a live read of each.
	certificates *lru.Cache
	// bundles remembers which ConfigMaps with authorities were valid, by name. Losing it costs a live read of each.
	bundles *lru.Cache
	// credentials remembers which Secrets were valid for what GatewayPolicies ask for. Losing it costs a live read of each.
	credentials *lru.Cache
	// copied remembers how the copies of certificates were left, by UID of the Gateway. Losing it costs live reads.
	copied *lru.Cache
	// granted remembers of which namespaces the cache has shown the grants as they were. Losing it costs a live list of each.
	granted *lru.Cache
	// confirmed remembers of which namespaces the cache has shown the GatewayPolicies as they are. Losing it costs a live list of
	// each.
	confirmed *lru.Cache
	// silent remembers which pods were ready although they did not answer, by UID. Losing it costs a live read of each.
	silent *lru.Cache
	// pace bounds how often a Gateway with many routes is looked at.
	pace *pace
	// settling remembers since when a status waits for pods. Losing it costs a longer wait.
	settling *lru.Cache
	// counted remembers when the status of a Gateway was written, by UID. Losing it costs a wait.
	counted *lru.Cache
}

// The operator's rights. It cannot give the gateway pods a right that it does not have itself: that is why it may read
// EndpointSlices. It keeps the subjects of one ClusterRoleBinding, and makes none.
//
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gateways;listenersets;httproutes;grpcroutes;tlsroutes;tcproutes;udproutes;referencegrants;backendtlspolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gateways/status;listenersets/status;httproutes/status;grpcroutes/status;tlsroutes/status;tcproutes/status;udproutes/status;backendtlspolicies/status,verbs=get;patch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gateways/finalizers,verbs=update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,resourceNames=slipway-gateway,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services;serviceaccounts;secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods;namespaces;configmaps;resourcequotas;limitranges,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=slipway.dev,resources=gatewayparameters;gatewaypolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=slipway.dev,resources=gatewaypolicies/status,verbs=get;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one Gateway true and says how far it got.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if !r.kinds.running() {
		// Every Gateway is an event when they are.
		return r.kit.Forget(ctx, req.NamespacedName)
	}
	if rest := r.pace.left(req.NamespacedName); rest > 0 {
		return outcome.Rest(rest), nil
	}
	s, err := r.load(ctx, req.NamespacedName)
	switch {
	case err != nil:
		return r.kit.Abort(req.NamespacedName, err)
	case s == nil:
		r.replicas.Follow(ctx, req.NamespacedName, document.Size{}, nil)
		if err := errors.Join(r.release(ctx, req.NamespacedName), r.retire(ctx, req.NamespacedName)); err != nil {
			return r.kit.Abort(req.NamespacedName, err)
		}
		return r.kit.Forget(ctx, req.NamespacedName)
	case !s.gateway.DeletionTimestamp.IsZero():
		// Owner references delete the children. When it has gone, routes are told.
		r.kit.Refusals.Forget(ctx, req.NamespacedName)
		r.replicas.Follow(ctx, req.NamespacedName, document.Size{}, nil)
		return r.kit.Conclude(ctx, req.NamespacedName, nil, &s.recheck, func() error { return nil })
	}

	if err := errors.Join(r.readBundles(ctx, s), r.readCertificates(ctx, s), r.readCredentials(ctx, s)); err != nil {
		return r.kit.Abort(req.NamespacedName, err)
	}
	s.graph = gatewayapi.Build(s.input)
	s.graph.NoteRivals()
	r.pace.rest(req.NamespacedName, len(s.graph.Routes))
	s.err = errors.Join(s.err, r.kit.Namespaces.Check(ctx, s.gateway))
	if s.err = errors.Join(s.err, r.confirmGrants(ctx, s)); s.err == nil {
		s.err = errors.Join(r.keepCopies(ctx, s), r.applyChildren(ctx, s))
	}
	r.askPods(ctx, s)
	r.listen(ctx, s)
	going := outcome.Only(s.err, slipwayv1alpha1.ReasonNamespaceTerminating)
	s.looked, s.refusal = r.kit.LookAgain(ctx, s.gateway, s.workload(), going, &s.recheck)
	s.judgePods()
	s.judgeRollout(r.kit.Clock.Now())
	return r.kit.Conclude(ctx, req.NamespacedName, s.err, &s.recheck, func() error { return r.writeStatuses(ctx, s) })
}

// Pods may know of objects that the cache does not show yet: so many.
const (
	moreRoutes    = 1000
	moreListeners = 64
)

// size is how much a pod can serve.
func (s *scope) size() document.Size {
	routes, listeners := len(s.graph.Routes)+len(s.graph.GatewayPolicies), len(s.graph.Listeners)
	return document.Size{Routes: routes + moreRoutes, Listeners: listeners + moreListeners, Objects: routes + listeners}
}

// askPods has the pods followed that can answer, gets their answers, and lets those that are stale know whether others are
// current.
func (r *Reconciler) askPods(ctx context.Context, s *scope) {
	key := client.ObjectKeyFromObject(s.gateway)
	var follow []replica.Pod
	for i := range s.pods {
		if pod := &s.pods[i]; replica.CanAnswer(pod) {
			follow = append(follow, replica.Pod{UID: pod.UID, IP: pod.Status.PodIP, Ready: replica.IsReady(pod)})
		}
	}
	r.replicas.Follow(ctx, key, s.size(), follow)
	for _, pod := range follow {
		s.answers[pod.UID] = r.replicas.Answer(key, pod.UID)
	}
	r.replicas.Standby(key, s.standby())
}
