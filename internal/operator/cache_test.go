package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/slipway-dev/slipway/internal/health"
)

func identity() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "shop", Namespace: "team", UID: "1", ResourceVersion: "7"}
}

func full() metav1.ObjectMeta {
	meta := identity()
	meta.Labels = map[string]string{"l": "1"}
	meta.Annotations = map[string]string{"a": "1", health.AnnotationRevision: "3"}
	meta.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: "slipway-webapp"}, {Manager: "kube-controller-manager"}}
	return meta
}

func TestTheCacheKeepsWhatIsNeeded(t *testing.T) {
	ownFields := full()
	ownFields.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "slipway-webapp"}}
	podMeta := full()
	podMeta.Annotations, podMeta.ManagedFields = nil, nil
	port, probe := []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}, &corev1.Probe{PeriodSeconds: 5}
	asked := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	gates := []corev1.PodSchedulingGate{{Name: "example.com/queue"}}
	protocol, labelled := "kubernetes.io/h2c", identity()
	labelled.Labels = map[string]string{"l": "1"}
	revision := full()
	revision.Annotations, revision.ManagedFields = map[string]string{health.AnnotationRevision: "3"}, nil
	tests := map[string]struct {
		transform toolscache.TransformFunc
		in, want  any
	}{
		"own managed fields of a child": {keepOwnManagedFields, &appsv1.Deployment{ObjectMeta: full()}, &appsv1.Deployment{ObjectMeta: ownFields}},
		"status of a pod": {
			keepPodStatus,
			&corev1.Pod{
				ObjectMeta: full(),
				Spec: corev1.PodSpec{NodeName: "n", SchedulerName: "s", SchedulingGates: gates, Containers: []corev1.Container{
					{Name: "app", Image: "shop:1", Ports: port, ReadinessProbe: probe, Resources: asked, Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "x"}}},
					{Name: "sidecar", Image: "sidecar:1", Ports: port},
				}},
				Status: corev1.PodStatus{Phase: "Running"},
			},
			&corev1.Pod{
				ObjectMeta: podMeta,
				Spec: corev1.PodSpec{NodeName: "n", SchedulingGates: gates, Containers: []corev1.Container{
					{Name: "app", Ports: port, ReadinessProbe: probe, Resources: asked}, {Name: "sidecar"},
				}},
				Status: corev1.PodStatus{Phase: "Running"},
			},
		},
		"revision of a ReplicaSet": {keepMetadata(health.AnnotationRevision), &metav1.PartialObjectMetadata{ObjectMeta: full()}, &metav1.PartialObjectMetadata{ObjectMeta: revision}},
		"ports of a Service": {
			keepPorts,
			&corev1.Service{ObjectMeta: full(), Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": "shop"},
				Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, AppProtocol: &protocol, NodePort: 30000}},
			}},
			&corev1.Service{ObjectMeta: identity(), Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, AppProtocol: &protocol}},
			}},
		},
		"labels of a namespace": {keepLabels, &metav1.PartialObjectMetadata{ObjectMeta: full()}, &metav1.PartialObjectMetadata{ObjectMeta: labelled}},
		"identity of a Secret":  {keepIdentity, &metav1.PartialObjectMetadata{ObjectMeta: full()}, &metav1.PartialObjectMetadata{ObjectMeta: identity()}},
		"a deletion that was missed": {
			keepIdentity, toolscache.DeletedFinalStateUnknown{Key: "team/shop"}, toolscache.DeletedFinalStateUnknown{Key: "team/shop"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tc.transform(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestASecretIsNeverCachedWithItsContent(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("hunter2")}}
	_, err := keepIdentity(secret)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the answer is %v", err)
	}
}
