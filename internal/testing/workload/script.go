package workload

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Behaviour is how the pods of an image behave.
type Behaviour string

// The behaviours.
const (
	// Ready: the pods become ready.
	Ready Behaviour = "ready"
	// ImageNotFound: the image does not exist.
	ImageNotFound Behaviour = "imageNotFound"
)

// Play acts as the cluster for every Deployment of a namespace until the context
// ends: it rolls out what is asked, and makes the pods of an image behave as the
// script says, ready unless it says otherwise. It looks often instead of watching, so
// that it cannot miss anything either.
func (c *Cluster) Play(ctx context.Context, namespace string, script map[string]Behaviour) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			// An error is a lost race: the next look is soon.
			_ = c.play(ctx, namespace, script)
		}
	}
}

func (c *Cluster) play(ctx context.Context, namespace string, script map[string]Behaviour) error {
	deployments := &appsv1.DeploymentList{}
	if err := c.Client.List(ctx, deployments, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range deployments.Items {
		deployment := &deployments.Items[i]
		if deployment.Status.ObservedGeneration >= deployment.Generation {
			continue
		}
		image := deployment.Spec.Template.Spec.Containers[0].Image
		if err := c.behave(ctx, deployment, script[image], image); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) behave(ctx context.Context, deployment *appsv1.Deployment, behaviour Behaviour, image string) error {
	switch behaviour {
	case Ready, "":
		return c.RollOut(ctx, deployment.Namespace, deployment.Name)
	case ImageNotFound:
		return c.Stick(ctx, deployment.Namespace, deployment.Name, corev1.PodStatus{
			Phase: corev1.PodPending,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Image: image, State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"},
			}}},
		})
	default:
		return fmt.Errorf("unknown behaviour %q", behaviour)
	}
}
