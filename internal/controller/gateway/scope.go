package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/workload"
)

// scope is what one reconcile knows. The phases fill it in the order of its fields; statuses are computed from it at the end.
type scope struct {
	// gateway is the Gateway as the cache has it.
	gateway *gatewayv1.Gateway

	// The children as the cache has them, empty (no UID) where there is none. Applying overwrites them with the API
	// server's answer. Set by load.
	account    *corev1.ServiceAccount
	role       *rbacv1.Role
	binding    *rbacv1.RoleBinding
	deployment *appsv1.Deployment
	service    *corev1.Service
	budget     *policyv1.PodDisruptionBudget
	autoscaler *autoscalingv2.HorizontalPodAutoscaler
	// copies is the metadata of the Secret with the certificates of other namespaces, whoever made it.
	copies *metav1.PartialObjectMetadata
	// pods are the pods of the Gateway's Deployments, by name, shared with the cache: not to be changed. Set by load.
	pods []corev1.Pod
	// replicaSets are the metadata of the Deployment's ReplicaSets, shared with the cache: not to be changed. Set by load.
	replicaSets []metav1.PartialObjectMetadata

	// input is what the graph is built of. The routes are those that name the Gateway or one of its ListenerSets, or have an
	// entry of ours for one of them. They are shared with the cache. Set by load, and the Secrets by readCertificates.
	input gatewayapi.Input
	// routes are the routes of the input, of any kind. Set by load.
	routes []client.Object
	// countsSets reports whether the cluster has ListenerSets. Set by load.
	countsSets bool
	// parameters are those by which the children are made. Set by load.
	parameters slipwayv1alpha1.GatewayParametersSpec
	// forgotten is why nobody knows the parameters: the children stay as they are. Set by load.
	forgotten error
	// unrelated are policies that have an entry for the Gateway, and are for no Service of it any more. Set by load.
	unrelated []*gatewayv1.BackendTLSPolicy
	// versions are those of the Secrets that listeners may show. Set by readCertificates.
	versions map[types.NamespacedName]string
	// credentialVersions are those of the Secrets that GatewayPolicies name, and copiedCredentials what is copied of them. Set by
	// readCredentials.
	credentialVersions map[types.NamespacedName]string
	// credentials are the Secrets of other namespaces among them, as the cache has them, also those that are missing. Set by
	// readCredentials.
	credentials       []client.Object
	copiedCredentials map[types.NamespacedName]copiedPart
	// detached are GatewayPolicies that have an entry for the Gateway, and name nothing of it any more. Set by load.
	detached []*slipwayv1alpha1.GatewayPolicy
	// bundleVersions are those of the ConfigMaps with authorities. Set by readBundles.
	bundleVersions map[types.NamespacedName]string
	// pullSecrets is what was found of the Secrets to pull images with. Set by loadParameters.
	pullSecrets pullsecret.Looked
	// shown are the parameters, and the Secrets that listeners name, as the cache has them. The children are made of them. Set by
	// load, and the Secrets by readCertificates.
	shown []client.Object
	// leftOut are the Secrets of ListenerSets whose certificates do not fit beside the others. Set by keepCopies.
	leftOut map[types.NamespacedName]bool
	// graph is what the Gateway serves. Set by Reconcile.
	graph *gatewayapi.Graph

	// answers are what the pods say, by UID. Set by askPods.
	answers map[types.UID]replica.Answer
	// served is what the pods that are ready serve. Set by judgePods.
	served served
	// events are those of pods whose status does not say what keeps them from serving, by UID. Set by listen.
	events map[types.UID][]corev1.Event
	// looked reports whether what refuses pods was looked at again, and refusal is what is left of it, or nil. Set by kit.LookAgain.
	looked  bool
	refusal *health.Refusal
	// rollout is the verdict on the Deployment and its pods. Set by judgeRollout.
	rollout rollout

	// err is what went wrong in the phases.
	err error
	// recheck is when to look again though nothing changes; zero: never.
	recheck outcome.Recheck
}

// load reads the Gateway and everything that it depends on from the cache. It returns nil when there is none of ours.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (*scope, error) {
	s := &scope{
		gateway:    &gatewayv1.Gateway{},
		account:    &corev1.ServiceAccount{},
		role:       &rbacv1.Role{},
		binding:    &rbacv1.RoleBinding{},
		deployment: &appsv1.Deployment{},
		service:    &corev1.Service{},
		budget:     &policyv1.PodDisruptionBudget{},
		autoscaler: &autoscalingv2.HorizontalPodAutoscaler{},
		answers:    map[types.UID]replica.Answer{},
	}
	if err := r.kinds.objects.Get(ctx, key, s.gateway); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if ours, err := r.owned.is(ctx, s.gateway); !ours || err != nil {
		return nil, err
	}
	name := desired.Name(s.gateway)
	err := errors.Join(
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.account),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.role),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.binding),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.deployment),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.service),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.budget),
		apply.Load(ctx, r.kit.Applier, s.gateway, name, s.autoscaler),
		r.loadPods(ctx, s),
		r.loadInput(ctx, s),
	)
	if err != nil {
		return nil, err
	}
	if err := r.loadParameters(ctx, s); err != nil {
		return nil, err
	}
	if s.copies, err = r.secret(ctx, types.NamespacedName{Namespace: key.Namespace, Name: desired.CopiesName(s.gateway)}); err != nil {
		return nil, err
	}
	return s, nil
}

// children are those that exist.
func (s *scope) children() []client.Object {
	return apply.Existing(s.account, s.role, s.binding, s.deployment, s.service, s.budget, s.autoscaler)
}

// loadPods reads the ReplicaSets of the Deployment, which was read before, and the pods of every Deployment of the Gateway: its
// Service sends requests to those that a released class has left, too. Others may have the labels, and are left out.
func (r *Reconciler) loadPods(ctx context.Context, s *scope) error {
	labelled := []client.ListOption{
		client.InNamespace(s.gateway.Namespace), client.MatchingFields{indexGateway: desired.LabelValue(s.gateway)}, client.UnsafeDisableDeepCopy,
	}
	pods, replicaSets := &corev1.PodList{}, &metav1.PartialObjectMetadataList{}
	replicaSets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	deployments := &appsv1.DeploymentList{}
	err := errors.Join(
		r.kit.Client.List(ctx, pods, labelled...),
		r.kit.Client.List(ctx, replicaSets, labelled...),
		r.kit.Client.List(ctx, deployments, client.InNamespace(s.gateway.Namespace),
			client.MatchingLabels{gatewayv1.GatewayNameLabelKey: desired.LabelValue(s.gateway)}, client.UnsafeDisableDeepCopy),
	)
	if err != nil {
		return fmt.Errorf("list Deployments, ReplicaSets and pods: %w", err)
	}
	for i := range deployments.Items {
		if r.kit.Applier.Ours(s.gateway, &deployments.Items[i]) {
			s.pods = append(s.pods, workload.PodsOf(&deployments.Items[i], replicaSets.Items, pods.Items)...)
		}
	}
	slices.SortFunc(s.pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	s.replicaSets = workload.ReplicaSetsOf(s.deployment, replicaSets.Items)
	return nil
}
