package redact_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/metric"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/notify"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
	"github.com/slipway-dev/slipway/internal/redact"
	"github.com/slipway-dev/slipway/internal/redact/redactlog"
	"github.com/slipway-dev/slipway/internal/testing/canary"
)

func TestThereAreManyForms(t *testing.T) {
	if n := len(canary.Forms()); n < 200 {
		t.Errorf("there are %d forms", n)
	}
}

// places are where words come from outside, with all the way to where they go.
var places = map[string]func(words string) string{
	"a text":                     redact.Clean,
	"a condition":                inCondition,
	"an event":                   inEvent,
	"a result of a Job":          inResult,
	"what a container said last": func(words string) string { return ofPod(corev1.ContainerStateTerminated{ExitCode: 1, Message: words}) },
	"why a container cannot start": func(words string) string {
		return ofPod(corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "exec: " + words})
	},
	"an event of a pod":  ofPodEvent,
	"a refusal of a pod": ofJob,
	"an error": func(words string) string {
		return inCondition(outcome.Classify("the Deployment", errors.New(words)).Error())
	},
	"an alarm":              inAlarm,
	"a field of an object":  inObject,
	"a log":                 inLog,
	"a log of the operator": inOperatorLog,
	"a stream":              inStream,
	"a metric":              inMetric,
}

func inCondition(words string) string {
	merged := status.Merge(nil, []metav1.Condition{status.False("Ready", "Failed", words)}, 1, metav1.Now())
	return merged[0].Message
}

type recorder struct{ note string }

func (r *recorder) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	r.note = fmt.Sprintf(note, args...)
}

var _ events.EventRecorder = &recorder{}

func inEvent(words string) string {
	told := &recorder{}
	status.Warn(status.Recorder(told))(&corev1.Pod{}, "Failed", words)
	return told.note
}

func inResult(words string) string {
	raw, _ := json.Marshal(mover.Result{Command: "snapshot", Kind: "DumpFailed", Message: words})
	result, err := mover.ParseResult(string(raw))
	if err != nil {
		return err.Error()
	}
	return result.Message
}

func ofPod(ended corev1.ContainerStateTerminated) string {
	pod := &corev1.Pod{}
	pod.Name = "web-1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", LastTerminationState: corev1.ContainerState{Terminated: &ended},
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}}
	return inCondition(health.Pod(pod).Message)
}

func ofPodEvent(words string) string {
	pod := &corev1.Pod{}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
	}}
	return inCondition(health.Pod(pod, corev1.Event{Reason: "FailedMount", Message: words, LastTimestamp: metav1.Now()}).Message)
}

func ofJob(words string) string {
	return inCondition(`Job "x" cannot create its pods: ` + words)
}

func inAlarm(words string) string {
	messages := notify.Messages(&rule.Alarm{Event: true, Message: words, At: time.Now()}, nil, "test")
	return string(messages[0].Body)
}

func inObject(words string) string {
	policy, err := change.NewPolicy(change.Options{Key: []byte("0123456789abcdef")})
	if err != nil {
		return words
	}
	object := map[string]any{
		"metadata": map[string]any{"name": "x", "uid": "u", "annotations": map[string]any{"note": words}},
		"spec":     map[string]any{"text": words, "list": []string{"a", words}, words: "x"}, "status": map[string]any{"message": words},
	}
	raw, _ := json.Marshal(object)
	state, err := change.Reduce(raw, change.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets"}, nil, policy)
	if err != nil {
		return err.Error()
	}
	return string(state.Body)
}

func inLog(words string) string {
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: redactlog.Attribute}))
	log.With("of", words).Error(words, "error", errors.New(words), "list", []string{words}, slog.Group("g", "text", words))
	return out.String()
}

func inOperatorLog(words string) string {
	var out strings.Builder
	log := redactlog.Logger(funcr.New(func(prefix, args string) { out.WriteString(prefix + args) }, funcr.Options{}))
	log.WithValues("of", words).Error(errors.New(words), words, "text", words)
	log.WithName("x").Info(words, "text", words)
	return out.String()
}

func inStream(words string) string {
	var out strings.Builder
	w := redact.NewWriter(&out, redact.New())
	for i := range len(words) {
		_, _ = w.Write([]byte{words[i]})
	}
	_ = w.Close()
	return out.String()
}

// inMetric is what the metrics of objects tell, of which one has the words in its status, and a failure with them was counted.
func inMetric(words string) string {
	registry := prometheus.NewRegistry()
	definition := metric.Definition{Name: "objects", Help: "Objects.", Labels: []string{"type", "status"}}
	failed := status.False("Ready", "Failed", words)
	failed.Status = metav1.ConditionStatus(words)
	registry.MustRegister(metric.NewByCondition(definition, []string{"Ready"}, func(context.Context) ([][]metav1.Condition, bool) {
		return [][]metav1.Condition{{failed, {Type: words, Status: metav1.ConditionTrue}}}, true
	}))
	raw, _ := json.Marshal(mover.Result{Command: "snapshot", Kind: words, Message: words})
	if result, err := mover.ParseResult(string(raw)); err == nil {
		failures := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "failures"}, []string{"reason"})
		failures.WithLabelValues(result.Kind).Inc() // as the operator counts them
		registry.MustRegister(failures)
	}
	families, err := registry.Gather()
	return fmt.Sprint(families, err)
}

// No form of a secret gets from where words come from to where they go.
func TestNoFormGetsThroughAnyPlace(t *testing.T) {
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, form := range canary.Forms() {
				if name == "a stream" && strings.Contains(strings.TrimRight(form.Text, "\n"), "\n") && !strings.Contains(form.Text, "PRIVATE KEY") {
					continue // what a line says of the next one is not known there
				}
				if trace, found := form.In(place(form.Text)); found {
					t.Errorf("%s: %q of %q is in %.400q", form.Name, trace, form.Text, place(form.Text))
				}
			}
		})
	}
}
