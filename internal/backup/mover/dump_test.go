package mover

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// The user's container sees nothing of what opens the repository, and none of our containers may be changed by it.
func TestTheContainerOfACommandSeesNoSecretOfOurs(t *testing.T) {
	for name, place := range map[string]Place{"a bucket": {Bucket: "b"}, "a volume": {Claim: "c", Path: "p"}} {
		t.Run(name, func(t *testing.T) {
			job, err := Job{
				Owner: metav1ac.OwnerReference().WithName("o"), Name: "j", Namespace: "n", Image: "ours:1", Steps: []Step{StepSnapshot, StepVerify}, Place: place, Encryption: "key", Credentials: "s3",
				Deadline: time.Hour, Dump: &DumpContainer{Image: "user:1", Command: []string{"dump"}},
			}.Build()
			if err != nil {
				t.Fatal(err)
			}
			pod := job.Spec.Template.Spec
			if *pod.AutomountServiceAccountToken || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != NobodyUser || pod.SecurityContext.FSGroup != nil {
				t.Errorf("the pod is %+v", pod)
			}
			var names []string
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				names = append(names, *c.Name)
				seen := map[string]bool{}
				for _, m := range c.VolumeMounts {
					seen[*m.Name] = m.ReadOnly == nil || !*m.ReadOnly
				}
				switch *c.Name {
				case ContainerDump:
					if diff := cmp.Diff(map[string]bool{"program": false, "socket": true}, seen); diff != "" {
						t.Errorf("it mounts (-want +got, true: to write):\n%s", diff)
					}
					continue
				case ContainerInstall:
					if diff := cmp.Diff(map[string]bool{"program": true}, seen); diff != "" {
						t.Errorf("it mounts (-want +got, true: to write):\n%s", diff)
					}
				default:
					if _, program := seen["program"]; program {
						t.Errorf("%s mounts what the user's container runs", *c.Name)
					}
				}
				if *c.Image != "ours:1" || !*c.SecurityContext.ReadOnlyRootFilesystem || c.RestartPolicy != nil {
					t.Errorf("%s is %+v", *c.Name, c)
				}
			}
			if want := "install dump snapshot verify"; strings.Join(names, " ") != want {
				t.Errorf("the containers are %q, want %q", names, want)
			}
			for _, v := range pod.Volumes {
				if *v.Name == "volume" {
					t.Error("a volume of the source is mounted")
				}
			}
		})
	}
}

func TestTheEnvironmentOfACommand(t *testing.T) {
	d := &DumpContainer{
		Env:     []corev1.EnvVar{{Name: "C", Value: "3"}, {Name: "A", Value: "1"}, {Name: "B", Value: "$(A) $(C)"}, {Name: "A", Value: "2"}},
		MoreEnv: []*corev1ac.EnvVarApplyConfiguration{corev1ac.EnvVar().WithName("C").WithValue("own")},
	}
	env, from, err := d.environment()
	if err != nil || len(from) != 0 {
		t.Fatal(from, err)
	}
	var got []string
	for _, e := range env {
		got = append(got, *e.Name+"="+*e.Value)
	}
	// A name stands there once: server-side apply refuses more. What refers to it comes after it.
	if diff := cmp.Diff([]string{"A=2", "C=own", "B=$(A) $(C)"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhoACommandRunsAs(t *testing.T) {
	ptr := func(n int64) *int64 { return &n }
	container := func(name string, user *int64) corev1.Container {
		c := corev1.Container{Name: name}
		if user != nil {
			c.SecurityContext = &corev1.SecurityContext{RunAsUser: user}
		}
		return c
	}
	pod := func(security *corev1.PodSecurityContext, containers ...corev1.Container) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{SecurityContext: security, Containers: containers}}
	}
	reports := pod(nil, container("db", nil))
	reports.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "db", User: &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: 70, GID: 71}}}}
	ofRoot := pod(&corev1.PodSecurityContext{RunAsUser: ptr(0)}, container("db", nil))
	ended := *reports.DeepCopy()
	ended.Status.Phase = corev1.PodFailed
	tests := map[string]struct {
		pods []corev1.Pod
		want Identity
	}{
		"nothing tells":           {nil, Identity{}},
		"as the pod":              {[]corev1.Pod{pod(&corev1.PodSecurityContext{RunAsUser: ptr(5), RunAsGroup: ptr(6), SupplementalGroups: []int64{9, 8, 9}, FSGroup: ptr(7)}, container("db", nil))}, Identity{User: 5, Group: 6, Groups: []int64{8, 9}}},
		"as the container":        {[]corev1.Pod{pod(&corev1.PodSecurityContext{RunAsUser: ptr(5)}, container("web", ptr(1)), container("db", ptr(2)))}, Identity{User: 2}},
		"as the kubelet reports":  {[]corev1.Pod{reports}, Identity{User: 70, Group: 71}},
		"never as root":           {[]corev1.Pod{ofRoot}, Identity{}},
		"not as a pod that ended": {[]corev1.Pod{ended}, Identity{}},
		"as the first that tells": {[]corev1.Pod{pod(nil, container("db", nil)), reports}, Identity{User: 70, Group: 71}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, IdentityOfPods("db", tc.pods)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhoACommandRunsAsBesideAClaim(t *testing.T) {
	user := int64(70)
	pod := corev1.Pod{
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shop-data"},
			}}},
		},
	}
	mover := *pod.DeepCopy()
	mover.Labels = map[string]string{"slipway.dev/backuprun": "x"}
	ended := *pod.DeepCopy()
	ended.Status.Phase, ended.ObjectMeta = corev1.PodSucceeded, metav1.ObjectMeta{Name: "ended"}
	if got := IdentityOfClaim("shop-data", []corev1.Pod{mover, ended, pod}); got.User != user {
		t.Errorf("got %+v", got)
	}
	for _, pods := range [][]corev1.Pod{nil, {mover}, {ended}} {
		if got := IdentityOfClaim("shop-data", pods); got.User != 0 {
			t.Errorf("got %+v of %+v", got, pods)
		}
	}
	if got := IdentityOfClaim("another", []corev1.Pod{pod}); got.User != 0 {
		t.Errorf("got %+v", got)
	}
}
