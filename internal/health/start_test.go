package health_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/health"
)

// These are messages of runc 1.1, 1.3 and containerd, as the kubelet passes them on. A mount says where and why, whatever else is
// long, and names the field that asks for it.
func TestAContainerThatCannotBeStartedSaysWhereAndWhy(t *testing.T) {
	const chain = `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: `
	const node = `/var/lib/kubelet/pods/8a4f6d2e-1b0c-4d7e-9f3a-5c6b7d8e9f0a/volumes/kubernetes.io~configmap/files-1`
	deep := "/" + strings.Repeat("srv/configuration/", 20) + "passwd"
	tests := map[string]struct{ path, message, want string }{
		"files over a file": {
			"/etc/passwd", chain + `error mounting "` + node + `" to rootfs at "/etc/passwd": mount ` + node + `:/etc/passwd (via /proc/self/fd/6), flags: 0x5001: not a directory: unknown`,
			`nothing can be mounted at "/etc/passwd" (spec.files[1].mountPath): not a directory`,
		},
		"files over a file, with advice": {
			"/etc/passwd", chain + `error mounting "` + node + `" to rootfs at "/etc/passwd": mount src=` + node + `, dst=/etc/passwd, dstFd=/proc/thread-self/fd/9, flags=MS_BIND|MS_REC: not a directory: Are you trying to mount a directory onto a file (or vice-versa)? Check if the specified host path exists and is the expected type: unknown`,
			`nothing can be mounted at "/etc/passwd" (spec.files[1].mountPath): not a directory`,
		},
		"files below a file": {
			"/etc/passwd/x/", chain + `error mounting "` + node + `" to rootfs at "/etc/passwd/x": create mountpoint for /etc/passwd/x mount: cannot create subdirectories in "/run/containerd/io.containerd.runtime.v2.task/k8s.io/0a/rootfs/etc/passwd/x": not a directory: unknown`,
			`nothing can be mounted at "/etc/passwd/x" (spec.files[1].mountPath): not a directory`,
		},
		"a volume over a file": {
			"/data", chain + `error mounting "/var/lib/kubelet/pods/8a/volumes/kubernetes.io~csi/pvc/mount" to rootfs at "/data": open o_path procfd: open /run/rootfs/data: permission denied`,
			`nothing can be mounted at "/data" (spec.storage.mountPath): permission denied`,
		},
		"a path that speaks of a command": {
			`/exec: "x": error mounting "a" to rootfs at "b": no`, chain + `error mounting "/n" to rootfs at "/exec: \"x\": error mounting \"a\" to rootfs at \"b\": no": mount /n: not a directory: unknown`,
			`nothing can be mounted at "/exec: \"x\": error mounting \"a\" to rootfs at \"b\": no" (spec.files[1].mountPath): not a directory`,
		},
		"a path that is long": {
			deep, chain + `error mounting "` + node + `" to rootfs at "` + deep + `": mount ` + node + `:` + deep + `: not a directory: unknown`,
			` (spec.files[1].mountPath): not a directory`,
		},
		"a mount that no field asks for": {
			"/other", chain + `error mounting "/n" to rootfs at "/etc/hosts": mount /n:/etc/hosts: not a directory: unknown`,
			`nothing can be mounted at "/etc/hosts": not a directory`,
		},
		"a command that speaks of commands": {
			"/x", chain + `exec: "run exec: \"nothing\": error mounting \"/n\" to rootfs at \"/x\": no": executable file not found in $PATH: unknown`,
			`cannot be started: exec: "run exec: \"nothing\": error mounting \"/n\" to rootfs at \"/x\": no": executable file not found in $PATH: unknown`,
		},
		"what is not known": {
			"/x", "failed to create containerd task: " + strings.Repeat("a link of the chain: ", 40) + "the cause",
			"cannot be started: failed to create containerd task: a link",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mounts := []corev1.VolumeMount{{Name: "files-0", MountPath: "/etc/app"}, {Name: "files-1", MountPath: tc.path}}
			if tc.path == "/data" {
				mounts[1].Name = "data"
			}
			for kubelet, status := range map[string]corev1.ContainerStatus{
				"waits":    {State: waiting("RunContainerError", tc.message)},
				"ended":    {State: ended(128, "StartError", tc.message)},
				"to start": {State: waiting("CrashLoopBackOff", ""), LastTerminationState: ended(128, "StartError", tc.message)},
			} {
				status.Name = "app"
				got := health.Pod(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: "shop-1", Labels: map[string]string{"slipway.dev/webapp": "shop"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", VolumeMounts: mounts}}},
					Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}},
				})
				if got.Reason != "ContainerStartError" || !strings.Contains(got.Message, tc.want) || len(got.Message) > 500 {
					t.Errorf("%s: %s (%d bytes): %s\nwant %s", kubelet, got.Reason, len(got.Message), got.Message, tc.want)
				}
				if name == "what is not known" && !strings.HasSuffix(got.Message, "the cause") {
					t.Errorf("%s: the cause is cut off: %s", kubelet, got.Message)
				}
			}
		})
	}
}
