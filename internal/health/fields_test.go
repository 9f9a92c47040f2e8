package health_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
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
			ObjectMeta: metav1.ObjectMeta{Name: "insufficient-cpu", Labels: map[string]string{slipwayv1alpha1.LabelBackupRun: "run"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "verify", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
			}}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
			}}},
		}
		verdict := health.Pod(pod)
		if named := strings.Contains(verdict.Message, "cpu 4 (spec.mover.resources.requests.cpu of the Backup)"); named != lacks {
			t.Errorf("%q: %q", message, verdict.Message)
		}
	}
}

// What a policy says in the words of others is the policy's, and its fields are not ours.
func TestARefusedJobNamesItsOwnFields(t *testing.T) {
	root := int64(0)
	for said, want := range map[string]struct{ reason, ends string }{
		`Error creating: pods "quota-x" is forbidden: no PriorityClass with name high was found`:                                                            {"PodsForbidden", "was found (spec.mover.priorityClassName)"},
		`(combined from similar events): Error creating: pods "quota-x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`:  {"QuotaExceeded", "1 of 1 is used"},
		`Error creating: admission webhook "x" denied the request: pods "quota-x" is forbidden: exceeded quota: q, requested: a=1, used: a=1, limited: a=1`: {"PodsForbidden", "limited: a=1"},
		`Error creating: admission webhook "x" denied the request: (spec.resources. and (spec.replicas)`:                                                    {"PodsForbidden", "(spec.resources. and (spec.replicas)"},
		`Error creating: pods "quota-x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`:                                       {"PodsForbidden", "(spec.mover.runAs is Root, which the namespace has to allow)"},
		`Error creating: pods "quota-x" is forbidden: policy says: violates PodSecurity "restricted:latest"`:                                                {"PodsForbidden", `violates PodSecurity "restricted:latest"`},
		`Error creating: pods "quota-x" is forbidden: error looking up service account a/default: serviceaccount "default" not found`:                       {"PodsNotCreated", "not found"},
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "quota", Labels: map[string]string{slipwayv1alpha1.LabelRestore: "again"}}}
		job.Spec.Template.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &root}
		if verdict := health.JobRefused(job, said); verdict.Reason != want.reason || !strings.HasSuffix(verdict.Message, want.ends) {
			t.Errorf("%q: %s, %q; want %s, %q", said, verdict.Reason, verdict.Message, want.reason, want.ends)
		}
	}
}
