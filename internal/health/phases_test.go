package health_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/health"
)

// endedAt is the end of a run.
func endedAt(start, end int64, code int32, reason, message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{StartedAt: metav1.Unix(start, 0), FinishedAt: metav1.Unix(end, 0), ExitCode: code, Reason: reason, Message: message}
}

// loop is what a kubelet shows of a container that ends like this whenever it is started: it has ended, runs again, and waits
// longer and longer before that.
func loop(code int32, reason, message string) []corev1.ContainerStatus {
	var phases []corev1.ContainerStatus
	last := corev1.ContainerState{}
	for restarts := range int32(6) {
		start := int64(1000 + 100*restarts)
		end := endedAt(start, start+1, code, reason, message)
		phases = append(phases,
			corev1.ContainerStatus{RestartCount: restarts, LastTerminationState: last, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(start, 0)}}},
			corev1.ContainerStatus{RestartCount: restarts, LastTerminationState: last, State: corev1.ContainerState{Terminated: end}},
			corev1.ContainerStatus{RestartCount: restarts, LastTerminationState: corev1.ContainerState{Terminated: end}, State: waiting("CrashLoopBackOff", "back-off 10s restarting failed container")},
		)
		last = corev1.ContainerState{Terminated: end}
	}
	return phases[1:] // before its first end nothing is wrong
}

// Whatever phase the kubelet is in, one trouble has one reason and one message, so it is told once.
func TestOneTroubleHasOneReasonInEveryPhaseOfTheKubelet(t *testing.T) {
	pulls := func(reason, message string) []corev1.ContainerStatus {
		quoted := `Back-off pulling image "` + image + `": ` + reason + `: ` + message
		return []corev1.ContainerStatus{{State: waiting(reason, message)}, {State: waiting("ImagePullBackOff", quoted)}, {State: waiting(reason, message)}, {State: waiting("ImagePullBackOff", quoted)}}
	}
	start := `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "/nope": stat /nope: no such file or directory: unknown`
	probeKilled := unhealthy(1000, "Liveness probe failed: HTTP probe failed with statuscode: 500")
	probeKilled.LastTimestamp = metav1.Unix(2000, 0)
	tests := map[string]struct {
		phases []corev1.ContainerStatus
		events []corev1.Event
		reason string
	}{
		"it ends without an error":                  {loop(0, "Completed", ""), nil, "CrashLoopBackOff"},
		"it ends with an error":                     {loop(3, "Error", "no database"), nil, "CrashLoopBackOff"},
		"it needs too much memory":                  {loop(137, "OOMKilled", ""), nil, "OOMKilled"},
		"it cannot be started":                      {append(loop(128, "StartError", start), corev1.ContainerStatus{State: waiting("RunContainerError", start)}, corev1.ContainerStatus{State: waiting("CreateContainerError", start)}), nil, "ContainerStartError"},
		"it is killed by a probe":                   {loop(137, "Error", ""), []corev1.Event{probeKilled}, "ProbeFailing"},
		"its image is not there":                    {pulls("ErrImagePull", `rpc error: code = NotFound desc = failed to pull and unpack image "x": failed to resolve reference "x": `+image+`: not found`), nil, "ImageNotFound"},
		"its image is denied":                       {pulls("ErrImagePull", `rpc error: code = Unknown desc = failed to pull and unpack image "x": failed to resolve reference "x": unexpected status from HEAD request to https://x: 403 Forbidden`), nil, "ImagePullDenied"},
		"its registry is away":                      {pulls("ErrImagePull", `rpc error: code = Unknown desc = failed to pull and unpack image "x": failed to resolve reference "x": failed to do request: Head "x": EOF`), nil, "ImagePullBackOff"},
		"its registry is away, as the runtime says": {pulls("RegistryUnavailable", "image pull failed for x because the registry is unavailable"), nil, "ImagePullBackOff"},
		"its image has a wrong signature":           {pulls("SignatureValidationFailed", "image pull failed for x because the signature validation failed: denied"), nil, "ImagePullBackOff"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			said := ""
			for i, status := range tc.phases {
				status.Name, status.Image = "app", image
				controls := true
				p := pod(corev1.PodStatus{
					Phase:             corev1.PodRunning,
					Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Unix(500, 0)}},
					ContainerStatuses: []corev1.ContainerStatus{status},
				})
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "shop", Controller: &controls}}
				// The events of a pod are read only where its status does not explain it.
				var events []corev1.Event
				if _, unexplained := health.Unexplained(p); unexplained {
					events = tc.events
				}
				got := health.Pod(p, events...)
				if said == "" {
					said = got.Message
				}
				if got.State != health.Failed || got.Reason != tc.reason || got.Message != said {
					t.Errorf("phase %d (%+v): %s %s %q, want %s %q", i, status.State, got.State, got.Reason, got.Message, tc.reason, said)
				}
			}
		})
	}
}

// What has done its work has no trouble.
func TestAContainerThatMayEndHasNoTroubleWhenItDoes(t *testing.T) {
	done := corev1.ContainerState{Terminated: endedAt(1, 2, 0, "Completed", "")}
	ofJob := pod(corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", RestartCount: 1, State: done, LastTerminationState: corev1.ContainerState{Terminated: endedAt(0, 1, 1, "Error", "")},
	}}})
	ofJob.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	controls := true
	beginning := pod(corev1.PodStatus{
		Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "migrate", State: done}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: waiting("PodInitializing", "")}},
	})
	beginning.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "shop", Controller: &controls}}
	left := pod(corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: done}}})
	left.OwnerReferences = beginning.OwnerReferences
	for name, p := range map[string]*corev1.Pod{"a Job's": ofJob, "a pod that is over": left, "an init container": beginning} {
		if got := health.Pod(p); got.State != health.Progressing {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
