package gateway

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit"
)

// livePod reads a pod that may have gone.
type livePod struct {
	client.Reader

	pod   *corev1.Pod
	there *bool
}

func (l livePod) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if !*l.there {
		return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	l.pod.DeepCopyInto(into.(*corev1.Pod))
	return nil
}

// A pod that answered after it was silent may have gone when it is silent again.
func TestAPodIsLookedAtEachTimeItFallsSilent(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge-1", UID: "1"},
		Status:     corev1.PodStatus{PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	there := true
	r := &Reconciler{kit: &kit.Tools{Live: livePod{pod: pod, there: &there}}, silent: lru.New(10)}
	confirm := func(silent bool) error {
		return r.confirmSilence(t.Context(), &scope{served: served{replicas: []replicaView{{pod: pod, silent: silent}}}})
	}
	if err := confirm(true); err != nil {
		t.Errorf("a pod that is there and does not answer: %v", err)
	}
	there = false
	if err := confirm(true); err != nil {
		t.Errorf("it is looked at twice: %v", err)
	}
	if err := confirm(false); err != nil {
		t.Errorf("a pod that answers: %v", err)
	}
	if err := confirm(true); err == nil {
		t.Error("a pod that has gone counts as silent")
	}
}
