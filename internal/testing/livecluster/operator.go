package livecluster

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/operator"
)

const (
	// SystemNamespace is where the operator runs.
	SystemNamespace = "slipway-system"
	// operatorDeployment is the name of the operator's Deployment.
	operatorDeployment = "slipway-operator"
	metricsPort        = 8080
)

// OperatorPods returns the operator's pods that are not on their way out.
func (c *Cluster) OperatorPods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := c.List(ctx, list, client.InNamespace(SystemNamespace), client.MatchingLabels{"app.kubernetes.io/component": "operator"})
	if err != nil {
		return nil, fmt.Errorf("list the operator's pods: %w", err)
	}
	return Staying(list.Items), nil
}

// Lease returns the Lease that the leader holds.
func (c *Cluster) Lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: SystemNamespace, Name: operator.LeaderElectionID}
	if err := c.Get(ctx, key, lease); err != nil {
		return nil, fmt.Errorf("get the Lease: %w", err)
	}
	return lease, nil
}

// LeaseHolder returns the identity of the process that leads, or nothing.
func (c *Cluster) LeaseHolder(ctx context.Context) (string, error) {
	lease, err := c.Lease(ctx)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// Leads reports whether the holder of the Lease is, or was, a process of the pod.
func Leads(pod *corev1.Pod, holder string) bool { return strings.HasPrefix(holder, pod.Name+"_") }

// Leader returns the pod that holds the Lease, or an error while none does.
func (c *Cluster) Leader(ctx context.Context) (*corev1.Pod, error) {
	holder, err := c.LeaseHolder(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := c.OperatorPods(ctx)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if Leads(&pods[i], holder) {
			return &pods[i], nil
		}
	}
	return nil, fmt.Errorf("the Lease is held by %q, which is none of the operator's pods", holder)
}

// OperatorComplete returns an error while the operator lacks a pod.
func (c *Cluster) OperatorComplete(ctx context.Context) error {
	deployment := &appsv1.Deployment{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: SystemNamespace, Name: operatorDeployment}, deployment); err != nil {
		return fmt.Errorf("get the operator's Deployment: %w", err)
	}
	want, status := *deployment.Spec.Replicas, deployment.Status
	if status.ObservedGeneration != deployment.Generation || status.Replicas != want || status.UpdatedReplicas != want ||
		status.AvailableReplicas != want {
		return fmt.Errorf("the operator has %d pods, %d of them available, want %d", status.Replicas, status.AvailableReplicas, want)
	}
	return nil
}

// OperatorHasLookedAtEverything returns an error until the leader has reconciled
// every WebApp of the cluster and has nothing left to do.
func (c *Cluster) OperatorHasLookedAtEverything(ctx context.Context) error {
	apps := &slipwayv1alpha1.WebAppList{}
	if err := c.List(ctx, apps); err != nil {
		return err
	}
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	text, err := c.OperatorMetrics(ctx, NewHTTPClient(), leader)
	if err != nil {
		return fmt.Errorf("the leader's metrics: %w", err)
	}
	reconciles, waiting := sum(text,
		"controller_runtime_reconcile_total"), sum(text, "workqueue_depth")+sum(text, "controller_runtime_active_workers")
	if reconciles < float64(len(apps.Items)) || waiting > 0 {
		return fmt.Errorf("%v reconciles of %d WebApps, %v waiting or at work", reconciles, len(apps.Items), waiting)
	}
	return nil
}

// sum adds up a metric of the WebApp controller over its other labels.
func sum(text, metric string) (total float64) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), "{")
		labels, value, ok := strings.Cut(rest, "} ")
		if !ok || name != metric || !strings.Contains(labels, `"webapp"`) {
			continue
		}
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			total += number
		}
	}
	return total
}
