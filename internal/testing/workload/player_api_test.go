//go:build apitest

package workload_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// watched is a client that counts how often a Deployment is read, and does something
// before the first one is patched.
type watched struct {
	client.Client
	reads       atomic.Int32
	beforePatch func()
	first       sync.Once
}

func (w *watched) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*appsv1.Deployment); ok {
		w.reads.Add(1)
	}
	return w.Client.Get(ctx, key, object, options...)
}

func (w *watched) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if w.beforePatch != nil {
		w.first.Do(w.beforePatch)
	}
	return w.Client.Patch(ctx, object, patch, options...)
}

// play plays the stage until the end of the test.
func (s *stage) play(through *watched) *workload.Player {
	s.Helper()
	player := workload.NewPlayer(through, env.Client, nil, s.namespace, nil)
	go player.Run(s.Context())
	return player
}

// rolledOut tells what is missing until the pods of an image have been rolled out.
func (s *stage) rolledOut(image string) error {
	deployment := &appsv1.Deployment{}
	if err := env.Client.Get(s.Context(), types.NamespacedName{Namespace: s.namespace, Name: "shop"}, deployment); err != nil {
		return err
	}
	if deployment.Status.ObservedGeneration != deployment.Generation {
		return fmt.Errorf("generation %d is observed of %d", deployment.Status.ObservedGeneration, deployment.Generation)
	}
	pods := &corev1.PodList{}
	if err := env.Client.List(s.Context(), pods, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	if len(pods.Items) != 2 {
		return fmt.Errorf("%d pods, want 2", len(pods.Items))
	}
	for i := range pods.Items {
		if got := pods.Items[i].Spec.Containers[0].Image; got != image {
			return fmt.Errorf("a pod runs %s, want %s", got, image)
		}
	}
	return nil
}

// The revision is an annotation, with which the Deployment has another generation: that
// is no reason to roll it out again.
func TestADeploymentIsPlayedOnce(t *testing.T) {
	s, through := newStage(t), &watched{Client: env.Client}
	player := s.play(through)
	environment.Eventually(t, func() error { return s.rolledOut("shop:1") })
	environment.Quiet(t, 300*time.Millisecond, through.reads.Load)
	if reads := through.reads.Load(); reads != 1 || !player.Idle(t.Context()) {
		t.Errorf("it was looked at %d times, want once", reads)
	}
}

func TestAnEditWhileTheRevisionIsNotedIsRolledOut(t *testing.T) {
	s, through := newStage(t), &watched{Client: env.Client}
	through.beforePatch = func() {
		deployment := s.deployment()
		deployment.Spec.Template.Spec.Containers[0].Image = "shop:2"
		if err := env.Client.Update(s.Context(), deployment); err != nil {
			t.Error(err)
		}
	}
	s.play(through)
	environment.Eventually(t, func() error { return s.rolledOut("shop:2") })
}

func TestAPlayerThatKnowsWhenToLookMissesNothing(t *testing.T) {
	s, through := newStage(t), &watched{Client: env.Client}
	player := workload.NewPlayer(through, env.Client, nil, s.namespace, nil)
	var seen atomic.Int32
	player.Seen = func() int { return int(seen.Load()) }
	go player.Run(t.Context())
	environment.Eventually(t, func() error { return s.rolledOut("shop:1") })

	s.setImage("shop:2")
	seen.Add(1)
	environment.Eventually(t, func() error { return s.rolledOut("shop:2") })

	player.Behave(map[string]workload.Behaviour{"shop:2": workload.NotReady})
	environment.Eventually(t, func() error {
		if status := s.deployment().Status; status.UnavailableReplicas == 0 {
			return fmt.Errorf("all pods are available")
		}
		return nil
	})
}
