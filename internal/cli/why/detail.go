package why

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
)

// logTarget names the log that explains why a pod is not ready.
type logTarget struct {
	pod       string
	container string
	// previous selects the log of the previous run, because the container was restarted.
	previous bool
}

// logView is the end of a log, as the tree shows it.
type logView struct {
	Container string `json:"container"`
	Previous  bool   `json:"previous,omitempty"`
	logTail
}

// logTargets lists the logs that the tree shows.
func logTargets(f explained) []logTarget {
	var targets []logTarget
	var walk func(nodes []node)
	walk = func(nodes []node) {
		for _, n := range nodes {
			if name, ok := strings.CutPrefix(n.Object, "pod/"); ok && n.Log != nil {
				targets = append(targets, logTarget{pod: name, container: n.Log.Container, previous: n.Log.Previous})
			}
			walk(n.Causes)
		}
	}
	walk([]node{f.explain().node})
	return targets
}

// logTargetOf finds the first container of a pod that has run and is not ready.
func logTargetOf(pod *corev1.Pod) (logTarget, bool) {
	for _, status := range pod.Status.InitContainerStatuses {
		if ended := lastEnd(status); ended != nil && ended.ExitCode != 0 && !status.Ready {
			return targetOf(pod, status), true
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if !status.Ready && (status.State.Running != nil || lastEnd(status) != nil) {
			return targetOf(pod, status), true
		}
	}
	return logTarget{}, false
}

func lastEnd(status corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if status.State.Terminated != nil {
		return status.State.Terminated
	}
	return status.LastTerminationState.Terminated
}

// targetOf picks the run that ended with an error. A restarted container may not have
// written anything yet.
func targetOf(pod *corev1.Pod, status corev1.ContainerStatus) logTarget {
	last := status.LastTerminationState.Terminated
	return logTarget{
		pod: pod.Name, container: status.Name,
		previous: status.State.Terminated == nil && last != nil && (last.ExitCode != 0 || status.State.Running == nil),
	}
}

func logOf(f *findings, target logTarget) *logView {
	return &logView{Container: target.container, Previous: target.previous, logTail: f.logs[target]}
}

// eventLine is a warning about an object.
type eventLine struct {
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Count   int32       `json:"count"`
	Last    metav1.Time `json:"last"`
	age     string
}

// These bound how many warnings an object shows, and how old they may be. By default the
// API server deletes events after an hour.
const (
	maxWarnings = 3
	maxAge      = time.Hour
)

// Events of the same kind contain different pod names, and some have a prefix.
var quoted = regexp.MustCompile(`"[^"]*"`)

const combined = "(combined from similar events): "

// without removes the warnings whose text was printed already.
func without(lines []eventLine, message string) []eventLine {
	return slices.DeleteFunc(lines, func(line eventLine) bool { return strings.Contains(message, line.Message) })
}

// warnings lists the latest warnings about an object, newest first.
func warnings(f *findings, object types.UID) []eventLine {
	var lines []eventLine
	for i := range f.events {
		event := &f.events[i]
		last, count := lastSeen(event)
		if event.InvolvedObject.UID != object || object == "" || f.now.Sub(last.Time) > maxAge {
			continue
		}
		lines = append(lines, eventLine{
			Reason: command.Printable(event.Reason), Message: command.Printable(strings.TrimSpace(event.Message)), Count: count, Last: last,
			age: command.Age(last, f.now),
		})
	}
	slices.SortStableFunc(lines, func(a, b eventLine) int {
		return cmp.Or(b.Last.Compare(a.Last.Time), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	seen := map[string]bool{}
	lines = slices.DeleteFunc(lines, func(line eventLine) bool {
		key := line.Reason + quoted.ReplaceAllString(strings.TrimPrefix(line.Message, combined), "")
		defer func() { seen[key] = true }()
		return seen[key]
	})
	if len(lines) > maxWarnings {
		lines = lines[:maxWarnings]
	}
	return lines
}

// ownWarnings lists the operator's warnings since the owner became not ready, except the
// first line of the tree. The operator writes an event for each change, so older events
// describe earlier problems.
func ownWarnings(f *findings, owner command.Declared, message string) []eventLine {
	since := metav1.Time{}
	if ready := meta.FindStatusCondition(owner.GetConditions(), slipwayv1alpha1.ConditionReady); ready != nil {
		since = ready.LastTransitionTime
	}
	return slices.DeleteFunc(without(warnings(f, owner.GetUID()), message), func(line eventLine) bool { return line.Last.Before(&since) })
}

// lastSeen supports both forms in which events count repetitions.
func lastSeen(event *corev1.Event) (metav1.Time, int32) {
	switch {
	case event.Series != nil:
		return metav1.Time(event.Series.LastObservedTime), event.Series.Count
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp, max(event.Count, 1)
	case !event.EventTime.IsZero():
		return metav1.Time(event.EventTime), 1
	default:
		return event.CreationTimestamp, max(event.Count, 1)
	}
}

// headline is the first line of the tree.
func headline(view whyView) string {
	switch {
	case view.State == health.Unknown:
		return fmt.Sprintf("%s: nothing tells how it does: %s", view.Object, command.Because(view.Reason, view.Message))
	case view.State == health.Healthy && view.Replicas == "":
		return fmt.Sprintf("%s is ready: %s", view.Object, command.Printable(view.Message))
	case view.Replicas == "":
		return fmt.Sprintf("%s is not ready: %s", view.Object, command.Because(view.Reason, view.Message))
	case view.State == health.Healthy && view.Routes != "":
		return fmt.Sprintf("%s is ready: %s replicas serve %s routes at %s", view.Object, view.Replicas, view.Routes,
			command.OrNone(command.Printable(view.Address)))
	case view.Routes != "":
		return fmt.Sprintf("%s is not ready (%s replicas, %s routes): %s", view.Object, view.Replicas, view.Routes,
			command.Because(view.Reason, view.Message))
	case view.State == health.Healthy:
		return fmt.Sprintf("%s is ready: %s replicas of %s", view.Object, view.Replicas, command.OrNone(command.Printable(view.Image)))
	}
	return fmt.Sprintf("%s is not ready (%s replicas): %s", view.Object, view.Replicas, command.Because(view.Reason, view.Message))
}
