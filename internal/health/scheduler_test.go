package health_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/health"
)

// What others write into the scheduler's message, or name, is no reason of the scheduler.
func TestOnlyAReasonOfTheSchedulerTellsWhatANodeLacks(t *testing.T) {
	for message, lacks := range map[string]bool{
		"0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient cpu.":      true,
		"0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are x.": true,
		"0/3 nodes are available: 3 Insufficient cpu. not found":                                                 true,
		"0/3 nodes are available: 3 Insufficient example.com/cpu.":                                               false,
		"0/3 nodes are available: 3 Insufficient cpu/example.com.":                                               false,
		"0/3 nodes are available: 3 node(s) had untolerated taint {Insufficient: cpu}.":                          false,
		"0/3 nodes are available: 3 the queue says Insufficient cpu.":                                            false,
		`0/3 nodes are available: persistentvolumeclaim "insufficient-cpu" not found.`:                           false,
		"the queue waits: Insufficient cpu.":                                                                     false,
		"0/3 nodes are available: 3 Too many pods. the queue says: 3 Insufficient cpu.":                          false,
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "insufficient-cpu"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "verify", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
			}}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
			}}},
		}
		verdict := health.Pod(pod)
		if named := strings.Contains(verdict.Message, "what it asks for, cpu 4: "); named != lacks {
			t.Errorf("%q: %q", message, verdict.Message)
		}
	}
}
