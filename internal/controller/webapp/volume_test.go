package webapp

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// These are messages of the scheduler of Kubernetes 1.36. What others have called their taints and resources is no word about
// the volume.
func TestOnlyAClaimThatIsNotBoundIsBlamedForAPod(t *testing.T) {
	tests := map[string]struct{ said, reason string }{
		"immediate": {"0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.", "VolumePending"},
		"with more": {"0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found", "VolumePending"},
		"late":      {"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't find available persistent volumes to bind.", "VolumePending"},
		"a taint":   {"0/1 nodes are available: 1 node(s) had untolerated taint {PersistentVolumeClaim: unbound}.", "Unschedulable"},
		"resources": {"0/1 nodes are available: 1 Insufficient example.com/PersistentVolumeClaims.", "Unschedulable"},
		"processor": {"0/1 nodes are available: 1 Insufficient cpu.", "Unschedulable"},
	}
	class := "platinum"
	s := &scope{claim: &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-data", UID: "1"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
	}}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			verdict := health.Verdict{State: health.Failed, Reason: slipwayv1alpha1.ReasonUnschedulable, Message: `pod "persistent volume": ` + tc.said}
			got := s.withVolume(verdict)
			if got.Reason != tc.reason {
				t.Errorf("%+v, want the reason %s", got, tc.reason)
			}
			// The class may not exist.
			const reported = `PersistentVolumeClaim "shop-data" of StorageClass "platinum" is not bound (spec.storage)`
			if tc.reason == slipwayv1alpha1.ReasonVolumePending && !strings.HasPrefix(got.Message, reported) {
				t.Errorf("the message is %q, want %q", got.Message, reported)
			}
		})
	}
}
