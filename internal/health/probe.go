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

// reasonUnhealthy is the reason of the kubelet's events about failed probes.
const reasonUnhealthy = "Unhealthy"

// These match parts of the messages of such events.
var (
	probeEvent   = regexp.MustCompile(`(?s)^(Startup|Readiness|Liveness) probe (?:failed|errored and resulted in \S+ state): (.*)$`)
	requestError = regexp.MustCompile(`^Get "[^"]*": `)
	statusCode   = regexp.MustCompile(`^HTTP probe failed with statuscode: (\d+)$`)
)

// These fields of a WebApp configure its probes.
const (
	fieldPort    = "spec.port"
	fieldPath    = "spec.health.path"
	fieldTimeout = "spec.health.timeoutSeconds"
)

// failingProbe reports a container that runs and is not ready: the request of its probe,
// and the answer if an event has it.
func failingProbe(pod *corev1.Pod, status corev1.ContainerStatus, events []corev1.Event) *Verdict {
	since, fails := failsProbe(pod, status)
	if !fails || isInit(pod, status.Name) {
		return nil
	}
	probe := probeOf(pod, status)
	if wasReady(pod, status) {
		// That was the time of the last failure. The first failures came before.
		since = since.Add(-probe.patience())
	}
	return &Verdict{
		State: Failed, Reason: slipwayv1alpha1.ReasonProbeFailing,
		Message: fmt.Sprintf("pod %q container %q fails its %s probe: %s", pod.Name, status.Name, probe.kind, probe.says(since, events, "", probe.asked())),
	}
}

// killedByProbe reports a container that the kubelet stopped because a probe failed. The
// exit code alone only shows that it was stopped.
func killedByProbe(pod *corev1.Pod, status corev1.ContainerStatus, ended *corev1.ContainerStateTerminated, events []corev1.Event) *Verdict {
	if !endedBySignal(ended) {
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

// endedBySignal reports whether a container ended as the kubelet ends one.
func endedBySignal(ended *corev1.ContainerStateTerminated) bool {
	const terminated, killed = 143, 137
	return (ended.ExitCode == terminated || ended.ExitCode == killed) && ended.Reason != slipwayv1alpha1.ReasonOOMKilled
}

// probe is a probe of a container.
type probe struct {
	container string
	// kind is startup, readiness or liveness.
	kind string
	// spec is the readiness probe. The other probes send the same request. It is nil if the
	// probe is not known.
	spec *corev1.Probe
	// port is the number of the port. It is the name if the number is not known, and may be
	// empty.
	port string
	// webApp means that fields of a WebApp configure the probe.
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

// patience is the longest time between the first failure of the probe and the moment at
// which the container becomes unready.
func (p probe) patience() time.Duration {
	if p.spec == nil {
		return time.Minute
	}
	return time.Duration(p.spec.FailureThreshold*(p.spec.PeriodSeconds+p.spec.TimeoutSeconds)+1) * time.Second
}

// asked describes the request of the probe, with the field that configures it.
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

// request describes what the probe sends. It may be empty.
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

// says returns the request and the answer after a prefix. If no event has the answer, it
// returns otherwise.
func (p probe) says(since time.Time, events []corev1.Event, prefix, otherwise string) string {
	event := latest(events, since, p.reports)
	if event == nil {
		return otherwise
	}
	return prefix + p.result(event)
}

// reports reports whether an event is about this probe of this container.
func (p probe) reports(event *corev1.Event) bool {
	m := probeEvent.FindStringSubmatch(combined.ReplaceAllString(event.Message, ""))
	return event.Reason == reasonUnhealthy && m != nil && strings.EqualFold(m[1], p.kind) &&
		event.InvolvedObject.FieldPath == fmt.Sprintf("spec.containers{%s}", p.container)
}

// result returns the request and the answer.
func (p probe) result(event *corev1.Event) string {
	output := probeEvent.FindStringSubmatch(combined.ReplaceAllString(event.Message, ""))[2]
	answer, field := p.probeAnswer(output)
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

// probeAnswer converts the output of a probe to a text that is the same at every attempt.
// It also returns the field of a WebApp that may be wrong, or "". What a command prints is its
// own. In an error of a request, only quotations are the application's.
func (p probe) probeAnswer(output string) (answer, field string) {
	output = strings.TrimSpace(requestError.ReplaceAllString(strings.TrimSpace(output), ""))
	if output == "" {
		return "no success", ""
	}
	if p.spec == nil || p.spec.Exec == nil {
		if m := statusCode.FindStringSubmatch(output); m != nil {
			return "HTTP status " + m[1], fieldPath
		}
		said := quotation.ReplaceAllString(output, `""`)
		for _, known := range requestErrors {
			if known.said.MatchString(said) {
				return known.answer, known.field
			}
		}
	}
	return lastLine(withoutAddresses(output)), ""
}

// requestErrors are the errors of Go's network and HTTP packages. Each is a whole part of the
// chain, at its end if nothing may follow.
var requestErrors = []struct {
	said          *regexp.Regexp
	answer, field string
}{
	{chainOf(`connect: connection refused$`), "connection refused", fieldPort},
	{chainOf(`connect: (?:no route to host|network is unreachable|host is down)$`), "the pod cannot be reached from its node", ""},
	{chainOf(`(?:context deadline exceeded|net/http: (?:request canceled|timeout awaiting|TLS handshake timeout)|i/o timeout$)`), "no answer in time", fieldTimeout},
	{chainOf(`(?:read|write): connection reset by peer$`), "the connection is reset", fieldPort},
	{chainOf(`malformed HTTP `), "the answer is not HTTP", fieldPort},
	{chainOf(`(?:EOF|unexpected EOF|http: server closed idle connection)$`), "the connection is closed without an answer", fieldPort},
	{chainOf(`stopped after 10 redirects$`), "more than 10 redirects", fieldPath},
}

// chainOf matches a chain of errors in which a part begins with an expression.
func chainOf(part string) *regexp.Regexp { return regexp.MustCompile(`(?:^|: )` + part) }
