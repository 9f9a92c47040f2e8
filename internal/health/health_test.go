package health_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/health"
)

const image = "registry.example.com/shop:2"

func pod(status corev1.PodStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-1"}, Status: status}
}

func app(status corev1.ContainerStatus) *corev1.Pod {
	status.Name, status.Image = "app", image
	return pod(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}})
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func ended(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

func TestPod(t *testing.T) {
	deleted := pod(corev1.PodStatus{})
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	notFound := `rpc error: code = NotFound desc = failed to pull and unpack image "` + image + `": not found`
	tests := map[string]struct {
		pod  *corev1.Pod
		want health.Verdict
	}{
		"ready": {
			pod(corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}),
			health.Verdict{State: health.Healthy},
		},
		"being deleted": {deleted, health.Verdict{State: health.Terminating, Reason: "Terminating", Message: `pod "shop-1" is being deleted`}},
		"being started": {pod(corev1.PodStatus{}), health.Verdict{State: health.Progressing, Reason: "NotReady", Message: `pod "shop-1" is being started`}},
		"init containers at work": {
			pod(corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionFalse}}}),
			health.Verdict{State: health.Progressing, Reason: "NotReady", Message: `pod "shop-1": its init containers have not finished`},
		},
		"runs and is not ready": {
			app(corev1.ContainerStatus{State: running()}),
			health.Verdict{State: health.Progressing, Reason: "NotReady", Message: `pod "shop-1" container "app" runs and is not ready: its readiness probe has not succeeded`},
		},
		"evicted": {
			pod(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}),
			health.Verdict{State: health.Failed, Reason: "Evicted", Message: `pod "shop-1" failed: The node was low on resource: memory.`},
		},
		"refused by the kubelet": {
			pod(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfexample.com/gpu", Message: "Node didn't have enough resource"}),
			health.Verdict{State: health.Failed, Reason: "PodFailed", Message: `pod "shop-1" failed: OutOfexample.com/gpu: Node didn't have enough resource`},
		},
		"crashed last week, fails its readiness probe today": {
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-1"}, Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Unix(200, 0)}},
				ContainerStatuses: []corev1.ContainerStatus{{
					Name: "app", RestartCount: 3, LastTerminationState: ended(1, "Error", "long ago"),
					State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(100, 0)}},
				}},
			}},
			health.Verdict{State: health.Failed, Reason: "ProbeFailing", Message: `pod "shop-1" container "app" fails its readiness probe: the pod's events have more`},
		},
		"missing tag with a telling name": {
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Image: "access-denied:v1.403", State: waiting("ErrImagePull", `failed to resolve "access-denied:v1.403": not found`),
			}}}},
			health.Verdict{State: health.Failed, Reason: "ImageNotFound", Message: `pod "shop-1" container "app": ImagePullBackOff: image "access-denied:v1.403" does not exist: check spec.image`},
		},
		"last words with a time": {
			app(corev1.ContainerStatus{State: ended(1, "Error", "2026/11/20 18:54:01 cannot open database")}),
			health.Verdict{State: health.Failed, Reason: "CrashLoopBackOff", Message: `pod "shop-1" container "app" ended with exit code 1: cannot open database`},
		},
		"painted last words": {
			app(corev1.ContainerStatus{State: ended(1, "Error", "\x1b[90m2026-11-20T18:54:01Z\x1b[0m \x1b[31mERR\x1b[0m cannot open database")}),
			health.Verdict{State: health.Failed, Reason: "CrashLoopBackOff", Message: `pod "shop-1" container "app" ended with exit code 1: ERR cannot open database`},
		},
		"last words in logfmt": {
			app(corev1.ContainerStatus{State: ended(1, "Error", `time=2026-11-20T18:54:01.123Z level=ERROR msg="cannot open database"`)}),
			health.Verdict{State: health.Failed, Reason: "CrashLoopBackOff", Message: `pod "shop-1" container "app" ended with exit code 1: level=ERROR msg="cannot open database"`},
		},
		"last words in JSON": {
			app(corev1.ContainerStatus{State: ended(1, "Error", `{"time":"2026-11-20T18:54:01Z","level":"ERROR","msg":"no"}`)}),
			health.Verdict{State: health.Failed, Reason: "CrashLoopBackOff", Message: `pod "shop-1" container "app" ended with exit code 1: {"level":"ERROR","msg":"no"}`},
		},
		"unschedulable": {
			pod(corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: 1 Insufficient cpu."}}}),
			health.Verdict{State: health.Failed, Reason: "Unschedulable", Message: `pod "shop-1": 0/1 nodes are available: 1 Insufficient cpu.`},
		},
		"missing tag, first attempt": {
			app(corev1.ContainerStatus{State: waiting("ErrImagePull", notFound)}),
			health.Verdict{State: health.Failed, Reason: "ImageNotFound", Message: `pod "shop-1" container "app": ImagePullBackOff: image "` + image + `" does not exist: check spec.image`},
		},
		"missing tag, again": {
			app(corev1.ContainerStatus{State: waiting("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: `+notFound)}),
			health.Verdict{State: health.Failed, Reason: "ImageNotFound", Terminal: true, Message: `pod "shop-1" container "app": ImagePullBackOff: image "` + image + `" does not exist: check spec.image`},
		},
		"denied": {
			app(corev1.ContainerStatus{State: waiting("ErrImagePull", "failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized")}),
			health.Verdict{State: health.Failed, Reason: "ImagePullDenied", Message: `pod "shop-1" container "app": ImagePullBackOff: the registry denies image "` + image + `": check spec.imagePullSecrets`},
		},
		"registry away, however often": {
			app(corev1.ContainerStatus{State: waiting("ImagePullBackOff", "dial tcp: lookup registry.example.com on 10.0.0.2:53: read udp 10.0.0.1:43431->10.0.0.2:53: i/o timeout")}),
			health.Verdict{State: health.Failed, Reason: "ImagePullBackOff", Message: `pod "shop-1" container "app": ImagePullBackOff: image "` + image + `" cannot be pulled: the registry does not answer as it should`},
		},
		"crash, waiting for the next start": {
			app(corev1.ContainerStatus{RestartCount: 1, State: waiting("CrashLoopBackOff", "back-off 10s"), LastTerminationState: ended(3, "Error", "listening\ncannot open database\n")}),
			health.Verdict{State: health.Failed, Reason: "CrashLoopBackOff", Message: `pod "shop-1" container "app" ended with exit code 3: cannot open database`},
		},
		"crash, just ended": {
			app(corev1.ContainerStatus{RestartCount: 1, State: ended(3, "Error", "cannot open database")}),
			health.Verdict{State: health.Failed, Reason: "CrashLoopBackOff", Message: `pod "shop-1" container "app" ended with exit code 3: cannot open database`},
		},
		"crash, started again": {
			app(corev1.ContainerStatus{RestartCount: 3, State: running(), LastTerminationState: ended(3, "Error", "cannot open database")}),
			health.Verdict{State: health.Failed, Reason: "CrashLoopBackOff", Terminal: true, Message: `pod "shop-1" container "app" ended with exit code 3: cannot open database`},
		},
		"crashed once and serves again": {
			app(corev1.ContainerStatus{RestartCount: 1, Ready: true, State: running(), LastTerminationState: ended(3, "Error", "")}),
			health.Verdict{State: health.Progressing, Reason: "NotReady", Message: `pod "shop-1" is being started`},
		},
		"ends without an error, again and again": {
			app(corev1.ContainerStatus{RestartCount: 4, State: waiting("CrashLoopBackOff", ""), LastTerminationState: ended(0, "Completed", "")}),
			health.Verdict{State: health.Failed, Reason: "CrashLoopBackOff", Terminal: true, Message: `pod "shop-1" container "app" ended with exit code 0`},
		},
		"out of memory": {
			app(corev1.ContainerStatus{RestartCount: 1, State: ended(137, "OOMKilled", "")}),
			health.Verdict{State: health.Failed, Reason: "OOMKilled", Message: `pod "shop-1" container "app" ended with exit code 137: it used more memory than it may`},
		},
		"init container": {
			pod(corev1.PodStatus{
				InitContainerStatuses: []corev1.ContainerStatus{{Name: "migrate", RestartCount: 1, State: ended(1, "Error", "no schema")}},
				ContainerStatuses:     []corev1.ContainerStatus{{Name: "app", State: waiting("PodInitializing", "")}},
			}),
			health.Verdict{State: health.Failed, Reason: "CrashLoopBackOff", Message: `pod "shop-1" init container "migrate" ended with exit code 1: no schema`},
		},
		"missing Secret": {
			app(corev1.ContainerStatus{State: waiting("CreateContainerConfigError", `secret "db" not found`)}),
			health.Verdict{State: health.Failed, Reason: "CreateContainerConfigError", Message: `pod "shop-1" container "app": secret "db" not found`},
		},
		"would run as root": {
			app(corev1.ContainerStatus{State: waiting("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "shop-1_team(0a1b)", container: app)`)}),
			health.Verdict{State: health.Failed, Reason: "CreateContainerConfigError", Message: `pod "shop-1" container "app": container has runAsNonRoot and image will run as root`},
		},
		"no such command": {
			app(corev1.ContainerStatus{RestartCount: 3, State: ended(128, "StartError", `failed to create task: runc create failed: exec: "/nope": stat /nope: no such file or directory`)}),
			health.Verdict{State: health.Failed, Reason: "ContainerStartError", Terminal: true, Message: `pod "shop-1" container "app" cannot be started: exec: "/nope": stat /nope: no such file or directory`},
		},
		"image name": {
			app(corev1.ContainerStatus{State: waiting("InvalidImageName", "")}),
			health.Verdict{State: health.Failed, Reason: "InvalidImageName", Terminal: true, Message: `pod "shop-1" container "app": the image name "` + image + `" cannot be parsed`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, health.Pod(tc.pod)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestALongLastWordIsCut(t *testing.T) {
	message := health.Pod(app(corev1.ContainerStatus{State: ended(1, "Error", strings.Repeat("ü", 5000))})).Message
	if len(message) > 400 || !strings.HasSuffix(message, "...") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}

func deployment(generation int64, replicas int32, status appsv1.DeploymentStatus) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1", Generation: generation},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		Status:     status,
	}
}

func TestDeployment(t *testing.T) {
	refused := func(message string) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message},
		}}
	}
	tests := map[string]struct {
		deployment *appsv1.Deployment
		want       health.Verdict
	}{
		"rolled out": {
			deployment(2, 3, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}),
			health.Verdict{State: health.Healthy},
		},
		"an old pod is left": {
			deployment(2, 3, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 3, AvailableReplicas: 4}),
			health.Verdict{State: health.Progressing, Reason: "RolloutInProgress", Message: `Deployment "shop" is rolling out`},
		},
		"not looked at": {
			deployment(3, 3, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}),
			health.Verdict{State: health.Progressing, Reason: "NotObserved", Message: `Deployment "shop" has not been looked at by its controller yet`},
		},
		"deadline": {
			deployment(2, 3, appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}}),
			health.Verdict{State: health.Failed, Reason: "ProgressDeadlineExceeded", Message: `Deployment "shop" made no progress within its deadline`, Terminal: true},
		},
		"quota": {
			deployment(2, 3, refused(`pods "shop-5d9-x7k" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4`)),
			health.Verdict{State: health.Failed, Reason: "QuotaExceeded", Message: `Deployment "shop" cannot create its pods: ResourceQuota "team" does not allow it: pods=1 is asked for (spec.replicas) and 4 of 4 is used`},
		},
		"Pod Security": {
			deployment(2, 3, refused(`pods "shop-5d9-x7k" is forbidden: violates PodSecurity "restricted:latest": host namespaces`)),
			health.Verdict{State: health.Failed, Reason: "PodsForbidden", Message: `Deployment "shop" cannot create its pods: violates PodSecurity "restricted:latest": host namespaces`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, health.Deployment(tc.deployment)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// These are Kubernetes 1.36's answers to the ReplicaSet controller.
func TestARefusedPodIsToldWithTheRuleAndTheField(t *testing.T) {
	tests := map[string]struct{ answer, reason, want string }{
		"quota of two resources": {
			`pods "shop-5d9-x7k" is forbidden: exceeded quota: team, requested: limits.memory=1Gi,requests.cpu=1, used: limits.memory=3Gi,requests.cpu=1500m, limited: limits.memory=3Gi,requests.cpu=2`,
			"QuotaExceeded", `ResourceQuota "team" does not allow it: limits.memory=1Gi is asked for (spec.resources.limits.memory) and 3Gi of 3Gi is used, requests.cpu=1 is asked for (spec.resources.requests.cpu) and 1500m of 2 is used`,
		},
		"quota of a resource that no field asks for": {
			`pods "shop-5d9-x7k" is forbidden: exceeded quota: team, requested: count/things.example.com=1, used: count/things.example.com=1, limited: count/things.example.com=1`,
			"QuotaExceeded", `ResourceQuota "team" does not allow it: count/things.example.com=1 is asked for and 1 of 1 is used`,
		},
		"quota that wants values": {
			`pods "shop-5d9-x7k" is forbidden: failed quota: team: must specify limits.cpu for: app; requests.memory for: app`,
			"QuotaExceeded", `ResourceQuota "team" wants a value for every container: must specify limits.cpu for: app (spec.resources.limits.cpu); requests.memory for: app (spec.resources.requests.memory)`,
		},
		"LimitRange": {
			`pods "shop-5d9-x7k" is forbidden: maximum cpu usage per Container is 1, but limit is 2`,
			"PodsForbidden", `a LimitRange of the namespace does not allow them: maximum cpu usage per Container is 1, but limit is 2 (spec.resources.limits.cpu)`,
		},
		"LimitRange, several times": {
			`pods "shop-5d9-x7k" is forbidden: [minimum memory usage per Container is 64Mi, but request is 8Mi, maximum cpu usage per Pod is 1.  No limit is specified, cpu max limit to request ratio per Container is 2, but provided ratio is 10.000000]`,
			"PodsForbidden", `a LimitRange of the namespace does not allow them: [minimum memory usage per Container is 64Mi, but request is 8Mi, maximum cpu usage per Pod is 1.  No limit is specified, cpu max limit to request ratio per Container is 2, but provided ratio is 10.000000] (spec.resources.requests.memory, spec.resources.limits.cpu)`,
		},
		"ValidatingAdmissionPolicy": {
			`pods "shop-5d9-x7k" is forbidden: ValidatingAdmissionPolicy 'trusted-images' with binding 'everywhere' denied request: images come from registry.example.com`,
			"PodsForbidden", `ValidatingAdmissionPolicy 'trusted-images' with binding 'everywhere' denied request: images come from registry.example.com`,
		},
		"ValidatingAdmissionPolicy that names the pod": {
			`pods "shop-5d9-x7k" is forbidden: ValidatingAdmissionPolicy 'p' denied request: pod shop-5d9-x7k is too big`,
			"PodsForbidden", `ValidatingAdmissionPolicy 'p' denied request: pod ... is too big`,
		},
		"admission webhook": {
			`admission webhook "pods.example.com" denied the request: no team label`,
			"PodsForbidden", `admission webhook "pods.example.com" denied the request: no team label`,
		},
		"admission webhook without a word": {
			`admission webhook "pods.example.com" denied the request without explanation`,
			"PodsForbidden", `admission webhook "pods.example.com" denied the request without explanation`,
		},
		"admission webhook that does not answer": {
			`Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: Post "https://hook.team.svc:443/?timeout=10s": dial tcp 10.96.12.7:443: connect: connection refused`,
			"PodsNotCreated", `Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: Post "https://hook.team.svc:443/?timeout=10s": dial tcp (address): connect: connection refused`,
		},
		"another rule": {
			`pods "shop-5d9-x7k" is forbidden: no PriorityClass with name high was found`,
			"PodsForbidden", `no PriorityClass with name high was found`,
		},
		"no ServiceAccount": {
			`pods "shop-5d9-" is forbidden: error looking up service account team/robot: serviceaccount "robot" not found`,
			"PodsNotCreated", `error looking up service account team/robot: serviceaccount "robot" not found (spec.serviceAccountName)`,
		},
		"a policy that speaks of quotas": {
			`pods "shop-5d9-x7k" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1`,
			"PodsForbidden", `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1`,
		},
		"a policy that speaks of limits": {
			`pods "shop-5d9-x7k" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: maximum cpu usage per Container is 1, but limit is 2`,
			"PodsForbidden", `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: maximum cpu usage per Container is 1, but limit is 2`,
		},
		"a webhook that speaks of accounts": {
			`admission webhook "pods.example.com" denied the request: error looking up service account team/robot: failed quota: team: must specify limits.cpu for: app`,
			"PodsForbidden", `admission webhook "pods.example.com" denied the request: error looking up service account team/robot: failed quota: team: must specify limits.cpu for: app`,
		},
		"an invalid value that speaks of rules": {
			`Pod "shop-5d9-x7k" is invalid: spec.containers[0].args[0]: Invalid value: "this is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1: violates PodSecurity: denied the request": no`,
			"PodsNotCreated", `spec.containers[0].args[0]: Invalid value: "this is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1: violates PodSecurity: denied the request": no`,
		},
		"nobody may create pods": {
			`pods is forbidden: User "system:serviceaccount:kube-system:replicaset-controller" cannot create resource "pods" in API group "" in the namespace "team"`,
			"PodsForbidden", `User "system:serviceaccount:kube-system:replicaset-controller" cannot create resource "pods" in API group "" in the namespace "team"`,
		},
		"invalid": {
			`Pod "shop-5d9-x7k" is invalid: spec.containers[0].image: Invalid value: " ": must not have leading or trailing whitespace`,
			"PodsNotCreated", `spec.containers[0].image: Invalid value: " ": must not have leading or trailing whitespace`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := health.Verdict{State: health.Failed, Reason: tc.reason, Message: `Deployment "shop" cannot create its pods: ` + tc.want}
			got := health.Deployment(deployment(2, 3, appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: tc.answer},
			}}))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
