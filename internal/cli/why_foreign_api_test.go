//go:build apitest

package cli

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestWhyForeignListsWhatOthersAdded(t *testing.T) {
	f := newFixture(t)
	env.StartOperator(t, nil)
	f.create()
	f.rollOut("registry.example.com/shop:1")
	f.expect(0, []string{"Nobody has added anything to what belongs to webapp/shop."}, "why", "shop", "--foreign")

	environment.Eventually(t, func() error {
		deployment, err := f.Kube.AppsV1().Deployments(f.Namespace).Get(t.Context(), "shop", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod := &deployment.Spec.Template.Spec
		pod.Containers = append(pod.Containers, corev1.Container{Name: "debug", Image: "busybox"})
		_, err = f.Kube.AppsV1().Deployments(f.Namespace).Update(t.Context(), deployment, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
		return err
	})
	patch := []byte(`{"metadata":{"labels":{"team":"a"},"annotations":{"example.com/note":"x"}},"spec":{"ports":[{"name":"extra","port":9999}]}}`)
	if _, err := f.Kube.CoreV1().Services(f.Namespace).Patch(t.Context(), "shop", types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-patch"}); err != nil {
		t.Fatal(err)
	}
	f.expect(0, []string{
		"deployment/shop   spec.template.spec.containers[debug]",
		"kubectl-edit",
		"service/shop      metadata.annotations[example.com/note]",
		"service/shop      metadata.labels.team",
		"service/shop      spec.ports[9999/TCP]",
		"kubectl-patch",
	}, "why", "shop", "--foreign")
	f.expect(0, []string{`"field": "spec.template.spec.containers[debug]"`, `"manager": "kubectl-edit"`}, "why", "webapp/shop", "--foreign", "-o", "json")
}
