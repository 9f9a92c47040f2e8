package health_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/testing/generate"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// checkVerdict checks the rules that every verdict must obey.
func checkVerdict(t *testing.T, verdict health.Verdict, reasons map[string]truth.Reason, object string) {
	t.Helper()
	switch verdict.State {
	case health.Healthy:
		if verdict != (health.Verdict{State: health.Healthy}) {
			t.Errorf("healthy, and there is more to say: %+v", verdict)
		}
		return
	case health.Failed:
		if _, ok := reasons[verdict.Reason]; !ok {
			t.Errorf("reason %q is none of the API: %+v", verdict.Reason, verdict)
		}
	case health.Progressing, health.Terminating, health.Unknown:
		if verdict.Terminal {
			t.Errorf("not failed, and waiting does not help: %+v", verdict)
		}
	default:
		t.Errorf("state %q: %+v", verdict.State, verdict)
	}
	if !conditionReason.MatchString(verdict.Reason) || !strings.HasPrefix(verdict.Message, object) || !utf8.ValidString(verdict.Message) {
		t.Errorf("reason %q, message %q", verdict.Reason, verdict.Message)
	}
}

func reasons(f *testing.F) map[string]truth.Reason {
	f.Helper()
	reasons, err := truth.Reasons()
	if err != nil {
		f.Fatal(err)
	}
	return reasons
}

// Any status of a pod leads to exactly one verdict. An hour later the verdict is the same.
func FuzzPod(f *testing.F) {
	generate.Seed(f, 100)
	known := reasons(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		pod := generate.Pod(source, "shop-1", "hash")
		events := generate.PodEvents(source)
		before := pod.DeepCopy()
		verdict, late := health.Pod(&pod, events...), health.LatePod(&pod, events...)
		if verdict != late && verdict.State != health.Progressing {
			t.Errorf("late %+v, not late %+v", late, verdict)
		}
		checkVerdict(t, late, known, `pod "shop-1"`)
		if _, unexplained := health.Unexplained(&pod); !unexplained && late.Reason == "ProbeFailing" && verdict != late {
			t.Errorf("%+v, and its status is said to explain it", late)
		}
		checkVerdict(t, verdict, known, `pod "shop-1"`)
		if diff := cmp.Diff(before, &pod); diff != "" {
			t.Errorf("the pod was changed (-before +after):\n%s", diff)
		}
		delay(&pod, time.Hour)
		for i := range events {
			events[i].LastTimestamp.Time = events[i].LastTimestamp.Add(time.Hour)
		}
		if diff := cmp.Diff(verdict, health.Pod(&pod, events...)); diff != "" {
			t.Errorf("an hour later (-now +later):\n%s", diff)
		}
	})
}

// delay moves every time of a pod.
func delay(pod *corev1.Pod, by time.Duration) {
	later := func(at *metav1.Time) {
		if !at.IsZero() {
			at.Time = at.Add(by)
		}
	}
	for i := range pod.Status.Conditions {
		later(&pod.Status.Conditions[i].LastTransitionTime)
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			for _, state := range []*corev1.ContainerState{&statuses[i].State, &statuses[i].LastTerminationState} {
				if state.Running != nil {
					later(&state.Running.StartedAt)
				}
				if state.Terminated != nil {
					later(&state.Terminated.StartedAt)
					later(&state.Terminated.FinishedAt)
				}
			}
		}
	}
}

func FuzzDeployment(f *testing.F) {
	generate.Seed(f, 100)
	known := reasons(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1"}}
		generate.Deployment(generate.From(data), deployment)
		before := deployment.DeepCopy()
		verdict := health.Deployment(deployment)
		checkVerdict(t, verdict, known, `Deployment "shop"`)
		if diff := cmp.Diff(before, deployment); diff != "" {
			t.Errorf("the Deployment was changed (-before +after):\n%s", diff)
		}
		if verdict.State == health.Healthy && !health.RolledOut(deployment) {
			t.Errorf("healthy, and not rolled out: %+v", deployment.Status)
		}
	})
}

// stamps are the forms in which common loggers write the time of a line.
var stamps = []func(at time.Time, text string) string{
	func(at time.Time, text string) string { return at.Format(time.RFC3339Nano) + " " + text },
	func(at time.Time, text string) string { return at.Format("2006/01/02 15:04:05 ") + text },
	func(at time.Time, text string) string { return at.Format("2006-01-02 15:04:05,000 ") + text },
	func(at time.Time, text string) string { return at.Format("[2006-01-02T15:04:05Z0700] ") + text },
	func(at time.Time, text string) string { return at.Format("I0102 15:04:05.000000       1 ") + text },
	func(at time.Time, text string) string { return at.Format("15:04:05.000 ") + text },
	func(at time.Time, text string) string {
		return at.Format("\x1b[90m3:04PM\x1b[0m \x1b[31mERR\x1b[0m ") + text
	},
	func(at time.Time, text string) string {
		return fmt.Sprintf("time=%s level=ERROR msg=%q", at.Format(time.RFC3339Nano), text)
	},
	func(at time.Time, text string) string {
		return fmt.Sprintf("time=%q level=error msg=%q", at.Format(time.RFC3339), text)
	},
	func(at time.Time, text string) string {
		return fmt.Sprintf(`{"time":%q,"msg":%s}`, at.Format(time.RFC3339Nano), strconv.Quote(text))
	},
	func(at time.Time, text string) string {
		return fmt.Sprintf(`{"level":"error","ts":%f,"msg":%s}`, float64(at.UnixMicro())/1e6, strconv.Quote(text))
	},
}

// A container that writes the same text each time it ends gives one message. Otherwise a
// condition would change with every restart.
func FuzzLastWords(f *testing.F) {
	f.Add(uint8(0), "cannot open database", int64(0), int64(3600))
	f.Add(uint8(1), "", int64(1_700_000_000), int64(1_800_000_000))
	f.Add(uint8(4), "main.go:12] no schema\n", int64(86_400), int64(86_401))
	f.Add(uint8(7), `say "time":"12:00"`, int64(1), int64(2))
	for stamp := range stamps {
		f.Add(uint8(stamp), strings.Repeat("ü", 200), int64(1_700_000_000), int64(1))
	}
	f.Fuzz(func(t *testing.T, stamp uint8, text string, first, second int64) {
		verdict := func(at int64) health.Verdict {
			const years = 100 * 365 * 24 * 3600 // all with four digits
			words := stamps[int(stamp)%len(stamps)](time.Unix((at%years+years)%years, at%1e9).UTC(), text)
			return health.Pod(app(corev1.ContainerStatus{State: ended(1, "Error", words)}))
		}
		if diff := cmp.Diff(verdict(first), verdict(second)); diff != "" {
			t.Errorf("at two times (-one +other):\n%s", diff)
		}
		if message := verdict(first).Message; len(message) > 400 || utf8.ValidString(text) && !utf8.ValidString(message) {
			t.Errorf("%d bytes: %q", len(message), message)
		}
	})
}

// Whatever an image is called, a registry that was not reached has said nothing about it.
func FuzzTheNameOfAnImageTellsNothing(f *testing.F) {
	for template := range pulls {
		f.Add(template)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// A reference has no space and no quote.
		ref := strings.Join(strings.Fields(strings.NewReplacer(`"`, "", "\\", "", ": ", ":").Replace(text)), "-")
		message := fmt.Sprintf(`rpc error: code = Unknown desc = failed to pull and unpack image %q: failed to resolve reference %q: failed to do request: Head %q: EOF`,
			ref, ref, "https://registry.example.com/v2/"+ref)
		if got := pulled(ref, waiting("ImagePullBackOff", message)); got.Reason != "ImagePullBackOff" || got.Terminal {
			t.Errorf("%s is %+v", message, got)
		}
	})
}
