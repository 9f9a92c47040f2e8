package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
)

// manyPods is a reader of a namespace with so many large pods, each tenth of which has the claim.
type manyPods struct {
	client.Reader
	count, most int
	err         error
}

func (r *manyPods) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	first, _ := strconv.Atoi(asked.Continue)
	list := into.(*corev1.PodList)
	for i := first; i < r.count && (asked.Limit == 0 || int64(i-first) < asked.Limit); i++ {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), Namespace: asked.Namespace, Annotations: map[string]string{
			"large": strings.Repeat("x", 10_000), slipwayv1alpha1.AnnotationBackupHooks: "permit",
		}}}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Command: []string{strings.Repeat("x", 10_000)}}}
		if i%10 == 0 {
			pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shop"},
			}}}
		}
		list.Items = append(list.Items, pod)
	}
	if next := first + len(list.Items); next < r.count {
		list.Continue = strconv.Itoa(next)
	}
	r.most = max(r.most, len(list.Items))
	return r.err
}

func TestThePodsOfANamespaceAreReadAFewAtATime(t *testing.T) {
	for _, count := range []int{0, 1, 49, 50, 51, 2000} {
		reader := &manyPods{count: count}
		pods, err := transfer.Pods(t.Context(), reader, "team", transfer.Mount("other", "shop"))
		if err != nil || len(pods) != (count+9)/10 {
			t.Errorf("of %d pods %d have the claim (%v), want %d", count, len(pods), err, (count+9)/10)
		}
		if reader.most > 50 {
			t.Errorf("%d pods are read at once", reader.most)
		}
		for i := range pods {
			pod := &pods[i]
			if len(pod.Annotations) != 1 || pod.Annotations[slipwayv1alpha1.AnnotationBackupHooks] != "permit" || pod.Spec.Containers[0].Command != nil {
				t.Fatalf("pod %s is kept with what tells nothing: %.300v", pod.Name, pod)
			}
		}
	}
	if _, err := transfer.Pods(t.Context(), &manyPods{count: 1, err: errors.New("no")}, "team", transfer.Mount("shop")); err == nil {
		t.Error("an error is lost")
	}
}
