package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOfAServiceTheCacheKeepsThePorts(t *testing.T) {
	protocol := "kubernetes.io/h2c"
	identity := metav1.ObjectMeta{Name: "shop", Namespace: "team", UID: "1", ResourceVersion: "7"}
	meta := *identity.DeepCopy()
	meta.Labels, meta.Annotations = map[string]string{"l": "1"}, map[string]string{"a": "1"}
	meta.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	in := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": "shop"},
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, AppProtocol: &protocol, NodePort: 30000}},
	}}
	want := &corev1.Service{ObjectMeta: identity, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, AppProtocol: &protocol}},
	}}
	got, err := keepPorts(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
