package health

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// What the kubelet says of a probe, in events with this reason and by type of probe, and
// what it puts before the error of a request.
const reasonUnhealthy = "Unhealthy"

var (
	probeEvent   = regexp.MustCompile(`(?s)^(Startup|Readiness|Liveness) probe (?:failed|errored and resulted in \S+ state): (.*)$`)
	requestError = regexp.MustCompile(`^Get "[^"]*": `)
	statusCode   = regexp.MustCompile(`^HTTP probe failed with statuscode: (\d+)$`)
)

// Fields of a WebApp that say how it is probed.
const (
	fieldPort    = "spec.port"
	fieldPath    = "spec.health.path"
	fieldTimeout = "spec.health.timeoutSeconds"
)

// failingProbe reports a container that runs and is not ready: what its probe asks for and
// what comes back, as far as events tell.
func failingProbe(pod *corev1.Pod, status corev1.ContainerStatus, events []corev1.Event) *Verdict {
	since, fails := failsProbe(pod, status)
	if !fails || isInit(pod, status.Name) {
		return nil
	}
	probe := probeOf(pod, status)
	if wasReady(pod, status) {
		// The last of the failures that made it unready came then, the first before.
		since = since.Add(-probe.patience())
	}
	return &Verdict{
		State: Failed, Reason: slipwayv1alpha1.ReasonProbeFailing,
		Message: fmt.Sprintf("pod %q container %q fails its %s probe: %s", pod.Name, status.Name, probe.kind, probe.says(since, events, "", probe.asked())),
	}
}

// killedByProbe reports a container that the kubelet ended because a probe failed: its exit
// code says no more than that it was told to stop.
func killedByProbe(pod *corev1.Pod, status corev1.ContainerStatus, ended *corev1.ContainerStateTerminated, events []corev1.Event) *Verdict {
	const terminated, killed = 143, 137
	if ended.ExitCode != terminated && ended.ExitCode != killed || ended.Reason == slipwayv1alpha1.ReasonOOMKilled {
		return nil
	}
	probe := probeOf(pod, status)
	for _, kind := range []string{"liveness", "startup"} {
		probe.kind = kind
		event := latest(events, ended.StartedAt.Time, probe.reports)
		if event == nil {
			continue
		}
		return &Verdict{
			State: Failed, Reason: slipwayv1alpha1.ReasonProbeFailing, Terminal: status.RestartCount >= terminalRestarts,
			Message: fmt.Sprintf("pod %q container %q was ended because it fails its %s probe: %s", pod.Name, status.Name, kind, probe.result(event)),
		}
	}
	return nil
}

// probe is what the kubelet asks of a container, and how often.
type probe struct {
	container string
	// kind is startup, readiness or liveness.
	kind string
	// spec is that of the readiness probe, which asks for the same as the others; nil where
	// it is not known.
	spec *corev1.Probe
	// port is the number of the port, or its name where there is no number, or empty.
	port string
	// webApp: fields of a WebApp say what is asked for.
	webApp bool
}

func probeOf(pod *corev1.Pod, status corev1.ContainerStatus) probe {
	p := probe{container: status.Name, kind: "readiness", webApp: isWebApp(pod) && isOwnContainer(pod, status.Name)}
	if status.Started != nil && !*status.Started {
		p.kind = "startup"
	}
	spec := specOf(pod, status.Name)
	if spec == nil {
		return p
	}
	p.spec = spec.ReadinessProbe
	if p.spec == nil {
		return p
	}
	switch {
	case p.spec.HTTPGet != nil:
		p.port = portNumber(spec, p.spec.HTTPGet.Port)
	case p.spec.TCPSocket != nil:
		p.port = portNumber(spec, p.spec.TCPSocket.Port)
	}
	return p
}

func portNumber(container *corev1.Container, port intstr.IntOrString) string {
	for _, p := range container.Ports {
		if port.Type == intstr.String && p.Name == port.StrVal {
			return fmt.Sprint(p.ContainerPort)
		}
	}
	return port.String()
}

// patience is how long before a container counts as not ready its probe began to fail.
func (p probe) patience() time.Duration {
	if p.spec == nil {
		return time.Minute
	}
	return time.Duration(p.spec.FailureThreshold*(p.spec.PeriodSeconds+p.spec.TimeoutSeconds)+1) * time.Second
}

// asked is what the probe asks for, with the field that says so.
func (p probe) asked() string {
	switch {
	case p.spec != nil && p.spec.HTTPGet != nil:
		return p.request() + p.field(fieldPath)
	case p.spec != nil && p.spec.TCPSocket != nil:
		return p.request() + p.field(fieldPort)
	default:
		return "the pod's events have more"
	}
}

// request is what the probe sends, or empty.
func (p probe) request() string {
	switch {
	case p.spec != nil && p.spec.HTTPGet != nil:
		return fmt.Sprintf("GET %s on port %s", p.spec.HTTPGet.Path, p.port)
	case p.spec != nil && p.spec.TCPSocket != nil:
		return fmt.Sprintf("a connection to port %s", p.port)
	default:
		return ""
	}
}

func (p probe) field(name string) string {
	if !p.webApp {
		return ""
	}
	return inField(name)
}

// says returns what was asked for and what came back, after a prefix, or the alternative
// where no event tells.
func (p probe) says(since time.Time, events []corev1.Event, prefix, otherwise string) string {
	event := latest(events, since, p.reports)
	if event == nil {
		return otherwise
	}
	return prefix + p.result(event)
}

// reports tells that an event is of this probe of this container.
func (p probe) reports(event *corev1.Event) bool {
	m := probeEvent.FindStringSubmatch(combined.ReplaceAllString(event.Message, ""))
	return event.Reason == reasonUnhealthy && m != nil && strings.EqualFold(m[1], p.kind) &&
		event.InvolvedObject.FieldPath == fmt.Sprintf("spec.containers{%s}", p.container)
}

// result is what was asked for and what came back.
func (p probe) result(event *corev1.Event) string {
	output := probeEvent.FindStringSubmatch(combined.ReplaceAllString(event.Message, ""))[2]
	answer, field := probeAnswer(output)
	if p.spec != nil && p.spec.TCPSocket != nil && field == fieldPath {
		field = fieldPort
	}
	if request := p.request(); request != "" {
		answer = request + ": " + answer
	}
	if field == "" {
		return answer
	}
	return answer + p.field(field)
}

// probeAnswer puts the output of a probe into words that are the same at every attempt, and
// names the field of a WebApp to look at, or none.
func probeAnswer(output string) (answer, field string) {
	output = strings.TrimSpace(requestError.ReplaceAllString(strings.TrimSpace(output), ""))
	if m := statusCode.FindStringSubmatch(output); m != nil {
		return "HTTP status " + m[1], fieldPath
	}
	switch {
	case strings.Contains(output, "connection refused"):
		return "connection refused", fieldPort
	case contains(output, "no route to host", "network is unreachable", "host is down"):
		return "the pod cannot be reached from its node", ""
	case contains(output, "deadline exceeded", "Client.Timeout", "i/o timeout", "timeout awaiting"):
		return "no answer in time", fieldTimeout
	case strings.Contains(output, "connection reset"):
		return "the connection is reset", fieldPort
	case strings.Contains(output, "malformed HTTP"):
		return "the answer is not HTTP", fieldPort
	case output == "EOF" || strings.HasSuffix(output, ": EOF"), strings.Contains(output, "server closed idle connection"):
		return "the connection is closed without an answer", fieldPort
	case strings.Contains(output, "stopped after 10 redirects"):
		return "more than 10 redirects", fieldPath
	case output == "":
		return "no success", ""
	default:
		return lastLine(withoutAddresses(output)), ""
	}
}
