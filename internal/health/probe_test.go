package health_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// at is a time, in seconds after the start of a test.
func at(second int64) metav1.Time { return metav1.Unix(1000+second, 0) }

// probed returns a pod of a WebApp. Its container runs since second 10. It is not ready
// since second unready, or was never ready if that is 0.
func probed(unready int64, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := app(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(10)}}})
	pod.UID = "uid"
	pod.Labels = map[string]string{slipwayv1alpha1.LabelWebApp: "shop"}
	pod.Spec.Containers = []corev1.Container{{
		Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 5, TimeoutSeconds: 2, FailureThreshold: 3, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")},
		}},
	}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(unready)}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func byTCP(pod *corev1.Pod) {
	pod.Spec.Containers[0].ReadinessProbe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}}
}

func ofGateway(pod *corev1.Pod) {
	pod.Labels = map[string]string{slipwayv1alpha1.LabelAPIGateway: "edge"}
	pod.Spec.Containers[0].Name, pod.Status.ContainerStatuses[0].Name = "gateway", "gateway"
}

func startup(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].Started = new(bool) }

// unhealthy is the kubelet's event about a failed probe.
func unhealthy(second int64, message string) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{FieldPath: "spec.containers{app}"},
		Type:           corev1.EventTypeWarning, Reason: "Unhealthy", Message: message,
		FirstTimestamp: at(second - 5), LastTimestamp: at(second), Count: 3,
	}
}

// The texts are those of kubelet 1.36.
func TestAPodThatStopsAnsweringSaysWhatWasAskedAndWhatCameBack(t *testing.T) {
	const get = `GET /healthz on port 8080: `
	readiness := func(output string) corev1.Event { return unhealthy(100, "Readiness probe failed: "+output) }
	tests := map[string]struct {
		pod   *corev1.Pod
		event corev1.Event
		want  string
	}{
		"HTTP 500":   {probed(100), readiness("HTTP probe failed with statuscode: 500"), get + "HTTP status 500 (spec.health.path)"},
		"wrong port": {probed(100), readiness(`Get "http://10.88.0.12:8080/healthz": dial tcp 10.88.0.12:8080: connect: connection refused`), get + "connection refused (spec.port)"},
		"no answer":  {probed(100), readiness(`Get "http://10.88.0.12:8080/healthz": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`), get + "no answer in time (spec.health.timeoutSeconds)"},
		"hangs up":   {probed(100), readiness(`Get "http://10.88.0.12:8080/healthz": EOF`), get + "the connection is closed without an answer (spec.port)"},
		"reset":      {probed(100), readiness(`Get "http://10.88.0.12:8080/healthz": read tcp 10.88.0.1:43210->10.88.0.12:8080: read: connection reset by peer`), get + "the connection is reset (spec.port)"},
		"not HTTP":   {probed(100), readiness(`Get "http://10.88.0.12:8080/healthz": net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x00\x00\x12\x04"`), get + "the answer is not HTTP (spec.port)"},
		"not HTTP, and it speaks of the network": {
			probed(100), readiness(`Get "http://10.88.0.12:8080/healthz": net/http: HTTP/1.x transport connection broken: malformed HTTP response "a: connect: connection refused"`),
			get + "the answer is not HTTP (spec.port)",
		},
		"a command that speaks of the network": {
			probed(100, func(p *corev1.Pod) {
				p.Spec.Containers[0].ReadinessProbe.ProbeHandler = corev1.ProbeHandler{Exec: &corev1.ExecAction{}}
			}),
			readiness("db: connect: connection refused"), "db: connect: connection refused",
		},
		"network gone":   {probed(100), readiness(`Get "http://10.88.0.12:8080/healthz": dial tcp 10.88.0.12:8080: connect: no route to host`), get + "the pod cannot be reached from its node"},
		"unknown words":  {probed(100), readiness(`Get "http://10.88.0.12:8080/healthz": read tcp 10.88.0.1:43210->10.88.0.12:8080: bad day`), get + "read tcp (address): bad day"},
		"IPv6":           {probed(100), readiness(`Get "http://[fd00::1]:8080/healthz": read tcp [fd00::2]:43210->[fd00::1]:8080: bad day`), get + "read tcp (address): bad day"},
		"combined":       {probed(100), unhealthy(100, `(combined from similar events): Readiness probe failed: HTTP probe failed with statuscode: 503`), get + "HTTP status 503 (spec.health.path)"},
		"probe errored":  {probed(100), unhealthy(100, `Readiness probe errored and resulted in unknown state: HTTP probe failed with statuscode: 502`), get + "HTTP status 502 (spec.health.path)"},
		"TCP":            {probed(100, byTCP), readiness(`dial tcp 10.88.0.12:8080: connect: connection refused`), "a connection to port 8080: connection refused (spec.port)"},
		"TCP times out":  {probed(100, byTCP), readiness(`dial tcp 10.88.0.12:8080: i/o timeout`), "a connection to port 8080: no answer in time (spec.health.timeoutSeconds)"},
		"before it fell": {probed(104), readiness("HTTP probe failed with statuscode: 500"), get + "HTTP status 500 (spec.health.path)"},

		"no event":                    {probed(100), corev1.Event{}, "GET /healthz on port 8080 (spec.health.path)"},
		"no event of TCP":             {probed(100, byTCP), corev1.Event{}, "a connection to port 8080 (spec.port)"},
		"an event of an earlier time": {probed(200), readiness("HTTP probe failed with statuscode: 500"), "GET /healthz on port 8080 (spec.health.path)"},
		"an event of its start":       {probed(100), unhealthy(100, "Startup probe failed: HTTP probe failed with statuscode: 500"), "GET /healthz on port 8080 (spec.health.path)"},
		"an event of another kind":    {probed(100), corev1.Event{Reason: "Pulled", LastTimestamp: at(100)}, "GET /healthz on port 8080 (spec.health.path)"},
		"an event of another one": {probed(100), func() corev1.Event {
			e := readiness("x")
			e.InvolvedObject.FieldPath = "spec.containers{sidecar}"
			return e
		}(), "GET /healthz on port 8080 (spec.health.path)"},
		"a pod whose probe is unknown": {probed(100, func(p *corev1.Pod) { p.Spec.Containers = nil }), readiness("HTTP probe failed with statuscode: 500"), "HTTP status 500 (spec.health.path)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := health.Verdict{State: health.Failed, Reason: "ProbeFailing", Message: `pod "shop-1" container "app" fails its readiness probe: ` + tc.want}
			if diff := cmp.Diff(want, health.Pod(tc.pod, tc.event)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if since, unexplained := health.Unexplained(tc.pod); !unexplained || since.Unix() < 1100 || !health.FailsProbe(tc.pod) {
				t.Errorf("unexplained %v since %v", unexplained, since)
			}
		})
	}
}

// The user cannot change the probe of a gateway.
func TestAGatewayThatStopsAnsweringNamesNoFieldOfAWebApp(t *testing.T) {
	event := unhealthy(100, "Readiness probe failed: HTTP probe failed with statuscode: 503")
	event.InvolvedObject.FieldPath = "spec.containers{gateway}"
	want := health.Verdict{State: health.Failed, Reason: "ProbeFailing", Message: `pod "shop-1" container "gateway" fails its readiness probe: GET /healthz on port 8080: HTTP status 503`}
	if diff := cmp.Diff(want, health.Pod(probed(100, ofGateway), event)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAPodThatHasNeverAnsweredIsStartingUntilItIsLate(t *testing.T) {
	const runs = `pod "shop-1" container "app" runs and is not ready: its `
	const fails = `pod "shop-1" container "app" fails its `
	refused := `Startup probe failed: Get "http://10.88.0.12:8080/healthz": dial tcp 10.88.0.12:8080: connect: connection refused`
	tests := map[string]struct {
		pod            *corev1.Pod
		event          corev1.Event
		starting, late string
	}{
		"nothing heard": {probed(0), corev1.Event{}, runs + "readiness probe has not succeeded", fails + "readiness probe: GET /healthz on port 8080 (spec.health.path)"},
		"readiness": {
			probed(0), unhealthy(20, "Readiness probe failed: HTTP probe failed with statuscode: 404"),
			runs + "readiness probe has not succeeded: GET /healthz on port 8080: HTTP status 404 (spec.health.path)",
			fails + "readiness probe: GET /healthz on port 8080: HTTP status 404 (spec.health.path)",
		},
		"startup": {
			probed(0, startup), unhealthy(20, refused),
			runs + "startup probe has not succeeded: GET /healthz on port 8080: connection refused (spec.port)",
			fails + "startup probe: GET /healthz on port 8080: connection refused (spec.port)",
		},
		"an event of the run before": {
			probed(0, startup), unhealthy(9, refused), runs + "startup probe has not succeeded", fails + "startup probe: GET /healthz on port 8080 (spec.health.path)",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := health.Verdict{State: health.Progressing, Reason: "NotReady", Message: tc.starting}
			if diff := cmp.Diff(want, health.Pod(tc.pod, tc.event)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			want = health.Verdict{State: health.Failed, Reason: "ProbeFailing", Message: tc.late}
			if diff := cmp.Diff(want, health.LatePod(tc.pod, tc.event)); diff != "" {
				t.Errorf("late: -want +got:\n%s", diff)
			}
			if since, unexplained := health.Unexplained(tc.pod); !unexplained || !since.Equal(at(10).Time) || health.FailsProbe(tc.pod) {
				t.Errorf("unexplained %v since %v", unexplained, since)
			}
		})
	}
}

func TestAContainerThatAProbeEndsDoesNotJustCrash(t *testing.T) {
	pod := probed(0, func(p *corev1.Pod) {
		state := ended(143, "Error", "terminated")
		state.Terminated.StartedAt, state.Terminated.FinishedAt = at(10), at(100)
		p.Status.ContainerStatuses[0].LastTerminationState = state
		p.Status.ContainerStatuses[0].State = waiting("CrashLoopBackOff", "")
		p.Status.ContainerStatuses[0].RestartCount = 3
	})
	for kind, want := range map[string]string{"Liveness": "liveness", "Startup": "startup"} {
		got := health.Pod(pod, unhealthy(99, kind+" probe failed: HTTP probe failed with statuscode: 500"))
		if diff := cmp.Diff(health.Verdict{
			State: health.Failed, Reason: "ProbeFailing", Terminal: true,
			Message: `pod "shop-1" container "app" was ended because it fails its ` + want + ` probe: GET /healthz on port 8080: HTTP status 500 (spec.health.path)`,
		}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if got := health.Pod(pod).Reason; got != "CrashLoopBackOff" {
		t.Errorf("without an event the reason is %q", got)
	}
}

func TestWhatKeepsANodeFromSettingAPodUpIsToldByItsEvents(t *testing.T) {
	pending := func() *corev1.Pod {
		p := app(corev1.ContainerStatus{State: waiting("ContainerCreating", "")})
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(10)},
			{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse},
		}
		return p
	}
	event := func(second int64, reason, message string) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, LastTimestamp: at(second)}
	}
	id := strings.Repeat("0af3", 16)
	network := event(12, "FailedCreatePodSandBox", `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "`+id+`": plugin type="bridge" failed (add): failed to allocate for range 0: no IP addresses available in range set: 10.88.0.1-10.88.0.254`)
	tests := map[string]struct {
		event        corev1.Event
		reason, want string
	}{
		"network": {network, "FailedCreatePodSandBox", `pod "shop-1" cannot be set up on its node: failed to setup network for sandbox: plugin type="bridge" failed (add): failed to allocate for range 0: no IP addresses available in range set: (address)-(address)`},
		"mount": {
			event(12, "FailedMount", `MountVolume.SetUp failed for volume "files-0" : references non-existent config key: greeting`), "FailedMount",
			`pod "shop-1" has a volume that cannot be mounted: MountVolume.SetUp failed for volume "files-0" : references non-existent config key: greeting`,
		},
		"attach":       {event(12, "FailedAttachVolume", `Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) shop-2`), "FailedMount", `pod "shop-1" has a volume that cannot be mounted: Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) shop-2`},
		"old":          {event(9, "FailedCreatePodSandBox", "x"), "NotReady", `pod "shop-1" is being started`},
		"another kind": {event(12, "Pulling", "x"), "NotReady", `pod "shop-1" is being started`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := health.Pod(pending(), tc.event)
			if got.Reason != tc.reason || got.Message != tc.want {
				t.Errorf("got %+v, want %s: %s", got, tc.reason, tc.want)
			}
		})
	}
	made := pending()
	made.Status.Conditions[1].Status = corev1.ConditionTrue
	if got := health.Pod(made, network); got.State != health.Progressing {
		t.Errorf("after the sandbox was made: %+v", got)
	}
	if _, unexplained := health.Unexplained(made); unexplained {
		t.Error("a pod that pulls its image is called unexplained")
	}
	if since, unexplained := health.Unexplained(pending()); !unexplained || !since.Equal(at(10).Time) {
		t.Errorf("unexplained %v since %v", unexplained, since)
	}
}

func TestAPodThatNeedsNoEventsIsExplained(t *testing.T) {
	ready := probed(100)
	ready.Status.ContainerStatuses[0].Ready = true
	ready.Status.Conditions[0].Status = corev1.ConditionTrue
	deleted := probed(100)
	deleted.DeletionTimestamp = new(metav1.Now().Rfc3339Copy())
	failed := probed(100)
	failed.Status.Phase = corev1.PodFailed
	for name, pod := range map[string]*corev1.Pod{
		"ready": ready, "deleted": deleted, "failed": failed, "not scheduled": pod(corev1.PodStatus{Phase: corev1.PodPending}),
		"image": app(corev1.ContainerStatus{State: waiting("ImagePullBackOff", "not found")}),
	} {
		if since, unexplained := health.Unexplained(pod); unexplained {
			t.Errorf("%s: unexplained since %v", name, since)
		}
	}
}

func TestResourcesAreNamedWithTheirField(t *testing.T) {
	ask := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("64Mi")},
		}
	}
	killed := func(change ...func(*corev1.Pod)) *corev1.Pod {
		return probed(0, append(change, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = ended(137, "OOMKilled", "") })...)
	}
	pendingFor := func(message string, change ...func(*corev1.Pod)) *corev1.Pod {
		return probed(0, append(change, func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message}}}
		})...)
	}
	const preemption = " no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
	tests := map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"limit":              {killed(ask), `pod "shop-1" container "app" ended with exit code 137: it used more memory than its limit of 64Mi (spec.resources.limits.memory)`},
		"limit of a gateway": {killed(ask, ofGateway), `pod "shop-1" container "gateway" ended with exit code 137: it used more memory than its limit of 64Mi (spec.resources.limits.memory)`},
		"limit as the kubelet has it": {killed(ask, func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("32Mi")}}
		}), `pod "shop-1" container "app" ended with exit code 137: it used more memory than its limit of 32Mi (spec.resources.limits.memory)`},
		"no limit": {killed(), `pod "shop-1" container "app" ended with exit code 137: its node ran out of memory, and it has no limit (spec.resources.limits.memory)`},

		"cpu":    {pendingFor("0/1 nodes are available: 1 Insufficient cpu."+preemption, ask), `pod "shop-1": no node has what it asks for, cpu 4 (spec.resources.requests.cpu): 0/1 nodes are available: 1 Insufficient cpu.`},
		"both":   {pendingFor("0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu."+preemption, ask), `pod "shop-1": no node has what it asks for, cpu 4 (spec.resources.requests.cpu), memory 1Gi (spec.resources.requests.memory): 0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu.`},
		"taints": {pendingFor("0/1 nodes are available: 1 node(s) had untolerated taint(s)."+preemption, ask), `pod "shop-1": 0/1 nodes are available: 1 node(s) had untolerated taint(s).`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := health.Pod(tc.pod).Message; got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// The output of a probe contains different addresses and ports at every attempt. A
// condition must not.
func FuzzProbeWords(f *testing.F) {
	f.Add("bad day", uint8(1), uint16(1), uint8(2), uint16(40000))
	f.Add("connection refused\n", uint8(0), uint16(0), uint8(255), uint16(65535))
	f.Add(`malformed HTTP response "\x00"`, uint8(9), uint16(9), uint8(8), uint16(8))
	f.Fuzz(func(t *testing.T, text string, host1 uint8, port1 uint16, host2 uint8, port2 uint16) {
		verdict := func(host uint8, port uint16) health.Verdict {
			from := "10.88.0." + strconv.Itoa(int(host)) + ":" + strconv.Itoa(int(port))
			return health.Pod(probed(100), unhealthy(100, `Readiness probe failed: Get "http://`+from+`/healthz": read tcp `+from+`->`+from+`: `+text))
		}
		one, other := verdict(host1, port1), verdict(host2, port2)
		if diff := cmp.Diff(one, other); diff != "" {
			t.Errorf("at two addresses (-one +other):\n%s", diff)
		}
		if one.Reason != "ProbeFailing" || len(one.Message) > 500 {
			t.Errorf("%+v", one)
		}
	})
}
