package podevents

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// play lets an hour pass over a trouble and returns at which seconds of it it is asked
// about.
func play(served bool, first time.Duration, found func(age time.Duration) []corev1.Event) []int {
	since := time.Unix(1000, 0)
	known := begin(since, served)
	var reads []int
	for age := first; age < time.Hour; {
		now := since.Add(age)
		if known.due(now) {
			known = known.after(now, found(age))
			reads = append(reads, int(age/time.Second))
		}
		wait := known.in(now)
		if wait == 0 {
			break
		}
		age += wait
	}
	return reads
}

func TestATroubleIsAskedAboutLessAndLessOften(t *testing.T) {
	nothing := func(time.Duration) []corev1.Event { return nil }
	event := func(time.Duration) []corev1.Event { return []corev1.Event{{}} }
	late := func(age time.Duration) []corev1.Event {
		if age < 3*time.Second {
			return nil
		}
		return []corev1.Event{{}}
	}
	tests := map[string]struct {
		served      bool
		first       time.Duration
		found       func(time.Duration) []corev1.Event
		reads, last int
		start       []int
	}{
		"served, and the kubelet says why":        {true, 0, event, 7, 960, []int{0, 30, 60, 120}},
		"served, and the kubelet is late":         {true, 0, late, 10, 1088, []int{0, 1, 2, 3, 33, 66}},
		"served, and the kubelet says nothing":    {true, 0, nothing, 19, 1320, []int{0, 1, 2, 3, 4, 6}},
		"starts, and the kubelet says something":  {false, 0, event, 17, 1320, []int{2, 3, 4, 6, 10, 15}},
		"starts, and the kubelet says nothing":    {false, 0, nothing, 17, 1320, []int{2, 3, 4, 6, 10, 15}},
		"seen at once after an operator's start":  {true, 10 * time.Minute, event, 2, 1200, []int{600, 1200}},
		"seen long after it began":                {true, 30 * time.Minute, event, 1, 1800, []int{1800}},
		"on a node whose clock is ahead":          {true, -5 * time.Second, event, 7, 960, []int{0, 30, 60}},
		"starting on a node whose clock is ahead": {false, -5 * time.Second, nothing, 17, 1320, []int{2, 3, 4}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reads := play(tc.served, tc.first, tc.found)
			if len(reads) > tc.reads || reads[len(reads)-1] > tc.last {
				t.Errorf("read at %v s, want at most %d reads and none after %d s", reads, tc.reads, tc.last)
			}
			for i, want := range tc.start {
				if i >= len(reads) || reads[i] != want {
					t.Errorf("read at %v s, want %v first", reads, tc.start)
					break
				}
			}
		})
	}
}

// Whoever may write events in a namespace decides how long they are.
func TestLongEventsAreCut(t *testing.T) {
	event := corev1.Event{Reason: "Unhealthy", Message: strings.Repeat("a", 2*maxMessage)}
	if kept := reduce(&event); kept.Reason != "Unhealthy" || len(kept.Message) != maxMessage {
		t.Errorf("kept are reason %q and %d bytes of the message", kept.Reason, len(kept.Message))
	}
}
