package workload

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// Act does for one object what the controllers of Kubernetes would do, if there is
// anything left to do: it rolls a Deployment out, with pods that behave as the script
// says, ends a Job of slipway-backup, binds or grows a volume, and scales what an autoscaler
// looks after to its lower bound, as for an application that nobody uses. An object that is gone, or that no
// controller of Kubernetes acts on, is no error.
func (c *Cluster) Act(ctx context.Context, object *unstructured.Unstructured, script map[string]Behaviour) error {
	return client.IgnoreNotFound(c.act(ctx, object, script))
}

func (c *Cluster) act(ctx context.Context, object *unstructured.Unstructured, script map[string]Behaviour) error {
	switch object.GetKind() {
	case "Deployment":
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
			return err
		}
		if deployment.Status.ObservedGeneration >= deployment.Generation {
			return nil
		}
		image := deployment.Spec.Template.Spec.Containers[0].Image
		return c.behave(ctx, deployment, script[image], image)
	case "Job":
		job := &batchv1.Job{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, job); err != nil {
			return err
		}
		if len(job.Status.Conditions) > 0 || job.DeletionTimestamp != nil {
			return nil
		}
		return c.Move(ctx, job, func(step mover.Step, result *mover.Result) *mover.Result {
			return moved(script[string(step)], step, result)
		})
	case "PersistentVolumeClaim":
		claim := &corev1.PersistentVolumeClaim{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, claim); err != nil {
			return err
		}
		return c.bind(ctx, claim)
	case "HorizontalPodAutoscaler":
		autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, autoscaler); err != nil {
			return err
		}
		return c.autoscale(ctx, autoscaler)
	default:
		return nil
	}
}

func (c *Cluster) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	asked := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase == corev1.ClaimBound && has.Cmp(asked) >= 0 {
		return nil
	}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes = claim.Spec.AccessModes
	// In one spelling, whatever the one in the request is.
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(asked.Value(), resource.BinarySI)}
	return c.Client.Status().Update(ctx, claim)
}

func (c *Cluster) autoscale(ctx context.Context, autoscaler *autoscalingv2.HorizontalPodAutoscaler) error {
	deployment := &appsv1.Deployment{}
	target := types.NamespacedName{Namespace: autoscaler.Namespace, Name: autoscaler.Spec.ScaleTargetRef.Name}
	if err := c.Client.Get(ctx, target, deployment); err != nil {
		return err
	}
	lowest := *autoscaler.Spec.MinReplicas
	if *deployment.Spec.Replicas == lowest {
		return nil
	}
	// Locked: the one that counts is what the autoscaler saw.
	patch := client.MergeFromWithOptions(deployment.DeepCopy(), client.MergeFromWithOptimisticLock{})
	deployment.Spec.Replicas = &lowest
	return c.Client.Patch(ctx, deployment, patch, client.FieldOwner("autoscaler"))
}
