package apigateway

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/kit/watch"
	"github.com/slipway-dev/slipway/internal/workload"
)

// scope is what one reconcile knows. The phases fill it in the order of its fields;
// status is computed from it at the end.
type scope struct {
	// gateway is the APIGateway as the cache has it. Its status is replaced at the end.
	gateway *slipwayv1alpha1.APIGateway

	// The children as the cache has them, empty (no UID) where there is none. Applying
	// overwrites them with the API server's answer. Set by load.
	account    *corev1.ServiceAccount
	role       *rbacv1.Role
	binding    *rbacv1.RoleBinding
	deployment *appsv1.Deployment
	service    *corev1.Service
	autoscaler *autoscalingv2.HorizontalPodAutoscaler
	budget     *policyv1.PodDisruptionBudget
	ingress    *networkingv1.Ingress
	// httpRoutes are at the places that desired gives them, nil where there is none and none
	// will be.
	httpRoutes []*gatewayv1.HTTPRoute
	// formerHTTPRoutes are those at no place any more.
	formerHTTPRoutes []*gatewayv1.HTTPRoute
	// parent is the Gateway that the HTTPRoutes attach to, empty where there is none. Set
	// by load.
	parent *gatewayv1.Gateway
	// parentNotWatched reports whether the operator may not look whether that Gateway exists, because
	// it does not work in its namespace. Set by load.
	parentNotWatched bool
	// pullSecrets is what was found of the Secrets to pull the image with. Set by load.
	pullSecrets pullsecret.Looked
	// gatewayAPI applies HTTPRoutes. Without it the cluster did not have the kinds when load
	// read, and the four above are empty for that. Set by load.
	gatewayAPI *apply.Applier
	// pods are the pods of the Deployment, by name, shared with the cache: not to be changed.
	// Set by load.
	pods []corev1.Pod
	// replicaSets are the metadata of the Deployment's ReplicaSets, shared with the cache.
	// Set by load.
	replicaSets []metav1.PartialObjectMetadata

	// check is what the spec alone tells about its routes. Set by Reconcile.
	check *check
	// exposeRefusal is why no HTTPRoute may be made for the Gateway that the spec names, or nil. Set by Reconcile.
	exposeRefusal *outcome.Error

	// claims are the hosts that the gateway asks for, and records those of hosts that it has, or had.
	claims  []hosts.Claim
	records *hosts.Holdings
	// conflicts are the hosts that the gateway does not get, and why. withheld are these and others that must not be
	// exposed. hostsUnknown reports whether it is not known of every host whose it is: then what is exposed stays as it is. These
	// five are set by takeHosts. left remembers which namespaces of other owners do not exist.
	conflicts    map[string]health.Trouble
	withheld     map[string]bool
	left         map[string]bool
	hostsUnknown bool
	// lingers reports whether something is left that exposed the gateway and is not wanted any more, or may be. Set by expose.
	lingers bool

	// answers are what the pods say, by UID. Set by askPods.
	answers map[types.UID]replica.Answer

	// events are those of pods whose status does not say what keeps them from serving, by
	// the UID of the pod. Set by listen.
	events map[types.UID][]corev1.Event
	// looked reports whether what refuses pods was looked at again, and refusal is what is left of it, or nil. Set by kit.LookAgain.
	looked  bool
	refusal *health.Refusal
	// rollout is the verdict on the Deployment and its pods. Set by judgePods.
	rollout rollout
	// served is what the pods that are ready serve. Set by judgeRoutes.
	served served
	// unsettled reports whether a pod is about to say something else. Set by judgeRoutes.
	unsettled bool
	// staleCache reports whether a pod, or the Deployment, is ahead of what the operator's cache
	// shows of the others. Set by judgeRoutes.
	staleCache bool

	// err is what went wrong in the phases.
	err error
	// recheck is when to look again though nothing changes; zero: never.
	recheck outcome.Recheck
}

// load reads the APIGateway and everything that belongs to it from the cache. It
// returns nil when the APIGateway is gone.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (*scope, error) {
	s := &scope{
		gateway:    &slipwayv1alpha1.APIGateway{},
		account:    &corev1.ServiceAccount{},
		role:       &rbacv1.Role{},
		binding:    &rbacv1.RoleBinding{},
		deployment: &appsv1.Deployment{},
		service:    &corev1.Service{},
		autoscaler: &autoscalingv2.HorizontalPodAutoscaler{},
		budget:     &policyv1.PodDisruptionBudget{},
		ingress:    &networkingv1.Ingress{},
		parent:     &gatewayv1.Gateway{},
		answers:    map[types.UID]replica.Answer{},
	}
	if found, err := r.kit.Get(ctx, key, s.gateway); !found || err != nil {
		return nil, err
	}
	name := desired.Name(s.gateway)
	err := errors.Join(
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.account),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.role),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.binding),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.deployment),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.service),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.autoscaler),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.budget),
		apply.Load(ctx, r.kit.Applier, s.gateway, desired.IngressName(s.gateway), s.ingress),
		r.gatewayAPI.load(ctx, s),
		r.loadPods(ctx, s),
	)
	if err != nil {
		return nil, err
	}
	s.pullSecrets, err = pullsecret.Look(ctx, r.kit.Client, key.Namespace, s.gateway.Spec.ImagePullSecrets, "spec.imagePullSecrets", "")
	return s, err
}

// children are those that exist, and the Secrets to pull the image with as the cache shows them.
func (s *scope) children() []client.Object {
	all := apply.Existing(s.account, s.role, s.binding, s.deployment, s.service, s.autoscaler, s.budget, s.ingress)
	for _, route := range s.existingHTTPRoutes() {
		all = append(all, route)
	}
	return append(all, s.pullSecrets.Seen...)
}

// loadPods reads the ReplicaSets and pods of the Deployment, which was read before. Others may have the labels too.
func (r *Reconciler) loadPods(ctx context.Context, s *scope) error {
	labelled, err := watch.Pods(ctx, r.kit.Client, s.gateway, indexAPIGateway)
	if err != nil {
		return err
	}
	replicaSets, err := watch.ReplicaSets(ctx, r.kit.Client, s.gateway, indexAPIGateway)
	if err != nil {
		return err
	}
	if r.kit.Applier.Ours(s.gateway, s.deployment) {
		s.pods = workload.PodsOf(s.deployment, replicaSets, labelled)
	}
	s.replicaSets = workload.ReplicaSetsOf(s.deployment, replicaSets)
	return nil
}
